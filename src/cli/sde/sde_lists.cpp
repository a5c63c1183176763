#include <fmt/format.h>

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/sde/sde_config.hpp"

namespace widelimit::cli {

namespace {

/// The list `name`, taken away; nothing may stand beside it that says the same.
std::vector<double> take_list(nlohmann::json& config, const char* name,
                              std::initializer_list<const char*> others) {
  if (!config.contains(name)) return {};
  FieldReader fields(config, "config");
  std::vector<double> values = fields.numbers(name);
  for (const char* other : others)
    if (fields.has(other))
      fields.fail(name, fmt::format("cannot be combined with {}; give one of them", other));
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

std::string SdePoint::label() const {
  std::string text = gamma ? fmt::format("gamma {:g}", *gamma) : "";
  if (temperature) text += fmt::format("{}temperature {:g}", text.empty() ? "" : ", ", *temperature);
  return text;
}

std::string SdePoint::cells() const {
  return (gamma ? fmt::format("{},", *gamma) : "") + (temperature ? fmt::format("{},", *temperature) : "");
}

std::string SdePoint::columns() const {
  return std::string(gamma ? "gamma," : "") + (temperature ? "temperature," : "");
}

nlohmann::json SdePoint::json() const {
  nlohmann::json result = nlohmann::json::object();
  if (gamma) result["gamma"] = *gamma;
  if (temperature) result["temperature"] = *temperature;
  return result;
}

namespace {

/// `names` is what the configuration calls its model or network.
void require_lists_have_use(const nlohmann::json& config) {
  const char* field = config.contains("network") ? "network" : "model";
  const auto place = config.find(field);
  if (place == config.end() || !place->is_string()) return;
  const std::string name = *place;
  const FieldReader fields(config, "config");
  if (config.contains("gammas") && name == "mlp")
    fields.fail("gammas", "an mlp has no residual weights: leave it out");
  const bool attends =
      name != "mlp" && name != "resnet" && name != "shaped_resnet" && !name.starts_with("unshaped");
  if (config.contains("temperatures") && !attends)
    fields.fail("temperatures", fmt::format("{} has no temperature: leave it out", name));
}

template <typename Value>
std::vector<std::optional<Value>> or_none(const std::vector<Value>& values) {
  if (values.empty()) return {std::nullopt};
  return {values.begin(), values.end()};
}

}  // namespace

std::vector<SdePoint> read_sde_points(const nlohmann::json& config) {
  require_lists_have_use(config);
  nlohmann::json rest = config;
  const std::vector<double> gammas = take_gammas(rest), temperatures = take_temperatures(rest);
  std::vector<SdePoint> points;
  for (const std::optional<double>& temperature : or_none(temperatures))
    for (const std::optional<double>& gamma : or_none(gammas)) {
      SdePoint point{gamma, temperature, rest};
      point.config.update(point.json());
      points.push_back(std::move(point));
    }
  return points;
}

}  // namespace widelimit::cli
