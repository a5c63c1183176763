#include <fmt/format.h>

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/sde_config.hpp"

namespace widelimit::cli {

namespace {

/// The list `name`, taken away; nothing may stand beside it that says the same.
std::vector<double> take_list(nlohmann::json& config, const char* name,
                              std::initializer_list<const char*> others) {
  if (!config.contains(name)) return {};
  FieldReader fields(config, "config");
  std::vector<double> values = fields.numbers(name);
  for (const char* other : others)
    if (fields.has(other)) fields.fail(name, fmt::format("stands beside {}; give one of them", other));
  config.erase(name);
  return values;
}

}  // namespace

std::vector<double> take_gammas(nlohmann::json& config) {
  std::vector<double> gammas = take_list(config, "gammas",
                                         {"gamma", "gamma_squared", "lambda", "gamma_feedforward",
                                          "gamma_squared_feedforward", "lambda_feedforward"});
  if (!gammas.empty()) config["gamma"] = gammas.front();
  return gammas;
}

std::vector<double> take_temperatures(nlohmann::json& config) {
  return take_list(config, "temperatures", {"temperature"});
}

}  // namespace widelimit::cli
