#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>

#include "cli/program.hpp"
#include "widelimit/covariance_sde/configuration.hpp"
#include "widelimit/covariance_sde/experiments.hpp"
#include "widelimit/error.hpp"
#include "widelimit/fields/config_fields.hpp"
#include "widelimit/specialization/experiments.hpp"

/// Every field of every configuration, with values that it may not hold: what the documented words say is what is
/// checked, before anything else is read.

using nlohmann::json;
using widelimit::ConfigField;
using widelimit::ConfigFields;
using widelimit::testing::ProgramResult;
using widelimit::testing::run_program;
using widelimit::testing::TemporaryFolder;

namespace {

/// Of every kind and size. JSON has no NaN and no infinity; numbers beyond double are errors of the file.
const std::vector<json>& values_to_try() {
  static const std::vector<json> values = {-1,
                                           0,
                                           -0.0,
                                           1,
                                           2,
                                           0.5,
                                           -0.5,
                                           1e-7,
                                           1e-6,
                                           3.5,
                                           9,
                                           10,
                                           1000,
                                           1001,
                                           10000,
                                           10001,
                                           100000,
                                           100001,
                                           1000000,
                                           1000001,
                                           10000000,
                                           10000001,
                                           1000000000,
                                           1000000001,
                                           1e300,
                                           -1e300,
                                           9223372036854775807LL,
                                           9223372036854775808ULL,
                                           "",
                                           "text",
                                           "full",
                                           "softmax",
                                           nullptr,
                                           true,
                                           json::array(),
                                           json::object(),
                                           json::array({1, 2}),
                                           json::array({2, 1}),
                                           json::array({1, 1}),
                                           json::array({1, "x"}),
                                           json::array({0.5}),
                                           json::array({-1}),
                                           json::array({json::array()}),
                                           json::array({1e300})};
  return values;
}

struct NumberWords {
  bool whole;
  double from, to;
  bool open;
};

/// "integer >= 1", "integer from 1 to 10", "number", "number > 0", "number in [0, 1]".
std::optional<NumberWords> number_words(const std::string& words) {
  static const std::regex pattern(
      R"((number|integer)(?: (>=|>) ([-+0-9.e]+)| from ([0-9]+) to ([0-9]+)| in \[([-+0-9.e]+), ([-+0-9.e]+)\])?)");
  std::smatch found;
  if (!std::regex_match(words, found, pattern)) return std::nullopt;
  NumberWords result{found[1] == "integer", -HUGE_VAL, HUGE_VAL, found[2] == ">"};
  for (const int group : {3, 4, 6})
    if (found[group].matched) result.from = std::stod(found[group]);
  for (const int group : {5, 7})
    if (found[group].matched) result.to = std::stod(found[group]);
  return result;
}

bool fits(const NumberWords& words, const json& value) {
  if (!value.is_number()) return false;
  const double number = value.get<double>();
  // Integers are written without a point, and end at 2^63 - 1.
  if (words.whole &&
      (!value.is_number_integer() || number > 9223372036854775807.0 || value == json(9223372036854775808ULL)))
    return false;
  return (words.open ? number > words.from : number >= words.from) && number <= words.to;
}

/// Whether the words that stand in --help and in the documentation allow a value; nothing where they are no range.
std::optional<bool> documented(const std::string& words, const json& value) {
  constexpr std::string_view list = "list of ", increasing = "increasing ", different = "different ",
                             zero = "0 or ";
  if (words.starts_with(list)) {
    std::string entry = words.substr(list.size());
    const bool ascending = entry.starts_with(increasing);
    if (ascending) entry = entry.substr(increasing.size());
    const bool distinct = entry.starts_with(different);
    if (distinct) entry = entry.substr(different.size());
    entry = std::regex_replace(entry, std::regex("^(number|integer)s"), "$1");
    if (!number_words(entry)) return std::nullopt;
    if (!value.is_array() || value.empty()) return false;
    if (distinct && value == json::array({1, 1})) return false;
    for (std::size_t i = 0; i < value.size(); ++i)
      if (!fits(*number_words(entry), value[i]) || (ascending && i > 0 && !(value[i - 1] < value[i])))
        return false;
    return true;
  }
  if (words.starts_with(zero))
    return value == json(0) || documented(words.substr(zero.size()), value).value();
  if (const auto number = number_words(words)) return fits(*number, value);
  if (words == "true or false") return value.is_boolean();
  static const std::regex choice(R"(\w+(, \w+)* or \w+)");
  if (!std::regex_match(words, choice)) return std::nullopt;
  static const std::regex word(R"(\w+)");
  std::set<std::string> known(std::sregex_token_iterator(words.begin(), words.end(), word), {});
  known.erase("or");
  return value.is_string() && known.contains(value.get<std::string>());
}

/// The message that refuses `value`, or nothing.
std::string refusal(const ConfigFields& fields, const std::string& name, const json& value) {
  try {
    widelimit::check_fields({{name, value}}, fields, "config");
  } catch (const widelimit::Error& error) {
    return error.what();
  }
  return "";
}

/// The number of fields whose words are no range.
int check_all_values(const ConfigFields& fields) {
  int others = 0;
  for (const ConfigField& field : fields) {
    CAPTURE(field.name);
    if (!documented(field.values.text(), json())) ++others;
    for (const json& value : values_to_try()) {
      const std::optional<bool> allowed = documented(field.values.text(), value);
      if (!allowed) continue;
      CAPTURE(value);
      const std::string message = refusal(fields, field.name, value);
      CHECK(message.empty() == *allowed);
      if (!*allowed) CHECK(message.starts_with(std::string("config.") + field.name + ": expected "));
    }
  }
  CHECK(refusal(fields, "no_such_field", 1).starts_with("config.no_such_field: unknown field; known are "));
  return others;
}

/// Runs a command on a configuration and checks that the only line of error names the file and `place`.
void check_config_refused(const std::string& command, const json& config, const std::string& place) {
  CAPTURE(command);
  CAPTURE(config);
  const TemporaryFolder folder;
  const std::string file = (folder / "config.json").string();
  std::ofstream(file) << config;
  const std::string out =
      command.starts_with("sde") ? " --no-pictures --out " + (folder / "out").string() : "";
  const ProgramResult result = run_program(command + " " + file + out);
  CHECK(result.code == 1);
  CHECK(result.output.empty());
  CAPTURE(result.errors);
  CHECK(result.errors.starts_with("widelimit: " + file + ": " + place));
  CHECK(std::count(result.errors.begin(), result.errors.end(), '\n') == 1);
}

json merged(json config, const json& change) {
  config.merge_patch(change);
  return config;
}

json flip_prior() { return {{"kind", "flip2"}, {"nu1", 2}, {"nu2", 2}}; }

json small_flow() {
  return {{"activation", "softmax1"}, {"prior", flip_prior()}, {"tokens", 4}, {"heads", 2}, {"tau", 1},
          {"samples", 100},           {"fresh_samples", 100},  {"records", 2}};
}

json small_network() {
  return {{"network", "shaped_transformer"}, {"gamma", 0.3}, {"width", 12}, {"depth", 2}, {"samples", 3}};
}

json small_sde() { return {{"model", "transformer"}, {"gamma", 0.3}, {"horizon", 0.05}, {"paths", 3}}; }

}  // namespace

TEST_CASE("configurations: values are checked as the documented words say") {
  for (const auto& experiment : widelimit::specialization::experiments().experiments) {
    const std::string& name = experiment.name;
    CAPTURE(name);
    // Priors, starts, matrices, folders, scans, and bounds that other fields set; they have tests of their own.
    const int most = name == "phase-transition" ? 5 : 4;
    CHECK(check_all_values(*experiment.fields) <= most);
  }
  for (const auto& experiment : widelimit::covariance_sde::experiments().experiments) {
    CAPTURE(experiment.name);
    CHECK(check_all_values(*experiment.fields) <= 5);
  }
  CHECK(check_all_values(widelimit::covariance_sde::listed_network_fields()) == 2);
}

TEST_CASE("configurations: every command checks its table before it begins, and names file and field") {
  for (const auto& experiment : widelimit::specialization::experiments().experiments)
    check_config_refused("heads " + experiment.name, {{"seed", -1}},
                         "config.seed: expected an integer >= 0, got -1\n");
  // Which fields `sde output` has hangs on its network, so this must be there.
  for (const auto& experiment : widelimit::covariance_sde::experiments().experiments) {
    const std::string& name = experiment.name;
    const char* range = name == "law" ? "2 to 2" : name == "coefficients" ? "1 to 24" : "1 to 1000";
    check_config_refused("sde " + name,
                         merged(name == "output" ? small_network() : json::object(), {{"tokens", 0}}),
                         fmt::format("config.tokens: expected an integer from {}, got 0\n", range));
  }
  check_config_refused("sde output", merged(small_network(), {{"samples", 0}}), "config.samples: expected ");
}

TEST_CASE("configurations of heads: matrices, priors and fields that do not go together") {
  const auto check = [](const std::string& name, const json& change, const std::string& place) {
    check_config_refused("heads " + name, merged(small_flow(), change), place);
  };
  check("flow", {{"prior", {{"kind", "flip2"}, {"nu1", -2}, {"nu2", 2}}}}, "config.prior: ");
  check("flow", {{"prior", 3}}, "config.prior: expected a JSON object");
  check("flow", {{"prior", nullptr}}, "config.prior: expected this field, got none\n");
  const json start{{"m", {{1, 0}, {0, 1}}}, {"S", {{1, 0}, {0, 1}}}};
  check("flow", {{"start", merged(start, {{"m", {{1, 0}}}})}},
        "config.start.m: expected 2 x 2 numbers, got 1 x 2\n");
  check("flow", {{"start", merged(start, {{"S", {{1, 2}, {2, 1}}}})}}, "config.start.S: ");
  check("flow", {{"start", merged(start, {{"b", {1}}})}}, "config.start: ");
  for (const char* activation : {"softmax", "softmaxv"})
    check("flow", {{"start", merged(start, {{"b", {1, 1}}})}, {"activation", activation}},
          std::string("config.start.b: has no effect with the activation ") + activation);
  for (const char* activation : {"softmax", "bayes"})
    check("flow", {{"start", merged(start, {{"v", {1}}})}, {"activation", activation}},
          std::string("config.start.v: has no effect with the activation ") + activation);
  check("flow", {{"start", start}, {"eta", 1}}, "config.eta: has no meaning together with start");
  check("flow", {{"batch_noise", 0.1}, {"stepper", "runge_kutta4"}}, "config.batch_noise: ");
  check("flow", {{"tau", 1}, {"step", 0.3}}, "config.tau: expected whole steps");
  const json sgd{{"activation", "bayes"}, {"prior", flip_prior()}, {"tokens", 4}, {"heads", 2}, {"tau", 0.2}};
  check_config_refused("heads sgd", merged(sgd, {{"dimension", 7}}),
                       "config.dimension: expected an integer >= 8, got 7\n");
  check_config_refused("heads sgd", merged(sgd, {{"dimension", 30}, {"planted_m", {{1, 0}}}}),
                       "config.planted_m: expected 2 x 2 numbers, got 1 x 2\n");
  const json times = merged(sgd, {{"dimension", 3}, {"etas", {1}}});
  for (const char* name : {"heads phase-transition", "heads feature-times"})
    check_config_refused(name, times, "config.dimension: expected an integer >= 4, got 3\n");
  for (const char* name : {"heads phase-transition", "heads feature-times"})
    check_config_refused(name, merged(times, {{"etas", {1, 0.5, 1.0}}}),
                         "config.etas: expected a list of different numbers ");
  check_config_refused("heads phase-transition", merged(times, {{"activations", {"softmax", "softmax"}}}),
                       "config.activations: expected a list of different activations");
  const json hessian{{"activation", "softmax1"}, {"prior", flip_prior()}, {"tokens", 4}, {"heads", 2}};
  check_config_refused("heads hessian", merged(hessian, {{"seed", 3}}),
                       "config.seed: has no effect: nothing is drawn except for");
  check_config_refused("heads phase-transition", merged(times, {{"activations", {"softmax", "relu"}}}),
                       "config.activations: ");
  check_config_refused("heads phase-transition",
                       merged(times, {{"activations", {"softmax"}}, {"dimension", 30}}),
                       "config.activation: give either");
  check_config_refused("heads digit-times",
                       {{"activation", "softmax"}, {"etas", {1}}, {"tau", 1}, {"mnist", "/no/such/folder"}},
                       "config.mnist: ");
}

TEST_CASE("configurations of sde: matrices and fields that do not go together") {
  const auto network = [](const json& change, const std::string& place) {
    check_config_refused("sde network", merged(small_network(), change), place);
  };
  network({{"V0", {{1, 2}, {2, 1}}}}, "config.V0: ");
  network({{"V0", {{1, 2}}}}, "config.V0: ");
  network({{"V0", {{1, 0}, {0, 1}}}, {"tokens", 2}},
          "config.tokens: has no meaning together with the other fields");
  network({{"tokens", 3}, {"rho0", -0.9}}, "config.rho0: ");
  network({{"width", 1}}, "config.width: expected at least 2 for 2 tokens, got 1\n");
  network({{"heads", 5}}, "config.heads: expected a divisor of the width, 12, got 5\n");
  network({{"heads", 12}, {"sampling", "reduced"}}, "config.heads: expected at most width / tokens = 6");
  network({{"lambda", 0.5}}, "config.lambda: ");
  network({{"gamma", 1}, {"lambda", 1}}, "config.lambda: ");
  network({{"gamma_squared", 0.1}}, "config.gamma_squared: give either");
  network({{"lower", 2}, {"upper", 1}}, "config.upper: expected a number > lower, 2, got 1\n");
  network({{"variance", 100}, {"upper", 1}}, "config.upper: ");
  network({{"lower", 0.9}},
          "config.lower: start: the eigenvalues of V_0 must lie within the stopping bounds ");
  network({{"variance", 1e301}}, "config.variance: ");
  network({{"V0", {{1e301, 0}, {0, 1}}}}, "config.V0: ");
  network({{"network", "shaped_resnet"}, {"temperature", 2}}, "config.temperature: has no meaning");
  network({{"network", "unshaped_post_ln"}, {"sampling", "reduced"}}, "config.sampling: ");
  network({{"layers", {1, 2}}}, "config.depth: has no meaning");
  const auto simulate = [](const json& change, const std::string& place) {
    check_config_refused("sde simulate", merged(small_sde(), change), place);
  };
  simulate({{"mask", "causal"}, {"scheme", "geometric"}}, "config.scheme: ");
  simulate({{"times", {0.1}}}, "config.horizon: has no meaning");
  simulate({{"max_step", 1e-300}}, "config.max_step: ");
  simulate({{"gamma", 1}, {"lambda", 1}}, "config.lambda: ");
  simulate({{"model", "mlp"}}, "config.gamma: has no meaning");
  check_config_refused("sde compare", merged(small_network(), {{"network", "unshaped"}}), "config.network: ");
  check_config_refused("sde stopping-time", merged(small_network(), {{"gammas", {0.1}}}),
                       "config.gammas: cannot be combined with gamma");
  check_config_refused("sde stopping-time", merged(small_network(), {{"rho0", 1}}), "config.rho0: start: ");
  for (const char* list : {"gammas", "temperatures"})
    check_config_refused("sde stopping-time", merged(small_network(), {{list, {0.1, 0.1}}}),
                         std::string("config.") + list + ": expected a list of different numbers ");
  const json resnet{{"model", "resnet"}, {"gamma", 0.3}, {"horizon", 0.05}},
      attention{{"model", "attention"}, {"gamma", 0.3}, {"horizon", 0.05}};
  for (const char* command : {"sde simulate", "sde explosion", "sde output"}) {
    check_config_refused(command, merged(resnet, {{"step_control", 0.1}}),
                         "config.step_control: has no meaning together with the other fields");
    check_config_refused(command, merged(attention, {{"finite_width_drift", 30}}),
                         "config.finite_width_drift: has no meaning together with the other fields");
  }
  check_config_refused("sde compare",
                       merged(small_network(), {{"network", "shaped_resnet"}, {"step_control", 0.1}}),
                       "config.step_control: has no meaning together with the other fields");
  check_config_refused("sde law", merged(resnet, {{"variance", 2}}),
                       "config.variance: has no effect on the correlation: leave it out");
  check_config_refused("sde flow", merged(attention, {{"heads", 2}}), "config.heads: unknown field");
  check_config_refused("sde flow", merged(resnet, {{"hidden_ratio", 2}}),
                       "config.hidden_ratio: unknown field");
  const json twice{{"network", "unshaped"}, {"gamma", 0.5}};
  check_config_refused("sde gradients", {{"width", 12}, {"depth", 2}, {"networks", {twice, twice}}},
                       "config.networks[1].label: appears twice in networks, \"unshaped\"");
  check_config_refused("sde gradients",
                       {{"width", 12}, {"depth", 2}, {"networks", {{{"network", "unshaped"}, {"heads", 0}}}}},
                       "config.networks[0].heads: expected an integer from 1 to 10000, got 0\n");
}
