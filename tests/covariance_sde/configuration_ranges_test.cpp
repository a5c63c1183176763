// The range of every field of every table of configuration.hpp, at its ends and outside.

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "support/read_whole.hpp"
#include "support/table_ranges.hpp"
#include "widelimit/covariance_sde/configuration.hpp"

using namespace widelimit;
using namespace widelimit::covariance_sde;
using nlohmann::json;

namespace {

template <typename Read>
void check_command(const char* command, const json& base, const Read& read) {
  const std::string of = command;
  CAPTURE(of);
  // Lists of points are for the commands, which give their readers one point after the other.
  const ConfigFields table = without_fields(command_fields(command), {"gammas", "temperatures", "networks"});
  widelimit::testing::check_table_ranges(table, base, [&](const json& config) {
    static_cast<void>(widelimit::testing::read_whole(config, command_fields(command), read));
  });
}

}  // namespace

TEST_CASE("sde tables: each range is the one that is read, and errors name the field") {
  const json model = {{"model", "transformer"}, {"gamma_squared", 0.25}, {"times", {0.01}}, {"paths", 4}};
  const json network = {
      {"network", "shaped_transformer"}, {"gamma_squared", 0.25}, {"width", 8}, {"depth", 2}, {"samples", 4}};
  check_command("simulate", model, read_sde_setup);
  check_command("explosion", model, read_sde_setup);
  check_command("network", network, read_network_setup);
  check_command("stopping-time", network, read_network_setup);
  check_command("entropy", network, read_network_setup);
  check_command("compare", network, [](ConfigReader& fields) {
    const NetworkSetup setup = read_network_setup(fields);
    return read_limit_options(fields, setup);
  });
  check_command("output", model, [](ConfigReader& fields) {
    static_cast<void>(fields.integer("outputs"));
    return read_sde_setup(fields);
  });
  check_command("law", {{"model", "attention"}, {"gamma_squared", 0.25}, {"times", {1}}}, read_law_setup);
  check_command("coefficients", {{"model", "transformer"}, {"gamma_squared", 0.25}}, read_coefficient_setup);
  check_command("flow", {{"model", "attention"}, {"gamma_squared", 0.25}, {"times", {1}}}, read_flow_setup);
  check_command("flow", {{"flow", "commuting"}, {"horizon", 1}}, read_flow_setup);
}

TEST_CASE("sde tables: a covariance that is none names its field") {
  const json start = {{"model", "attention"}, {"gamma_squared", 0.25}};
  for (const json& matrix :
       {json::parse("[[1, 0.5], [0, 1]]"), json::parse("[[1, 2], [2, 1]]"), json::parse("[[1, 0.5]]"),
        json::parse("[[1, 0.5], [0.5]]"), json::parse("[[0, 0], [0, 1]]"), json::parse("[[-1]]"),
        json::parse("[]"), json::parse("[[]]"), json::parse("[[\"a\"]]"), json::parse("[[true]]"),
        json::parse("3"), json::parse("\"abc\""), json::parse("{}"),
        json::array({json::array({std::nan("")})}), json::array({json::array({HUGE_VAL})})}) {
    CAPTURE(matrix);
    json config = start;
    config["V0"] = matrix;
    std::string message;
    try {
      static_cast<void>(
          widelimit::testing::read_whole(config, command_fields("coefficients"), read_coefficient_setup));
    } catch (const Error& error) {
      message = error.what();
    }
    CHECK(message.starts_with("config.V0"));
  }
}
