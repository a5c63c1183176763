#include "widelimit/propagation/fields.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "support/error_message.hpp"
#include "widelimit/error.hpp"
#include "widelimit/propagation/results.hpp"
#include "widelimit/propagation/simulated_phase.hpp"
#include "widelimit/propagation/transformer.hpp"

using namespace widelimit;
using namespace widelimit::propagation;
using nlohmann::json;

namespace {

const char* const names[] = {"Parameters",         "trajectory",        "exponents",       "phase_diagram",
                             "critical",           "critical_values",   "fit_losses",      "simulate_samples",
                             "simulate_angle",     "simulate_gradient", "simulate_groups", "simulate_phase",
                             "simulate_trajectory"};

template <typename Read>
auto read_by(const std::string& name, const json& given, const Read& read) {
  const ConfigFields table = computation(name).all();
  ConfigReader fields(given, table, name);
  return read(fields);
}

Transformer transformer_of(const std::string& name, const json& given) {
  return read_by(name, given, read_transformer);
}

}  // namespace

TEST_CASE("propagation fields: defaults are those of the library") {
  for (const char* name : names) {
    CAPTURE(name);
    const Transformer read = transformer_of(name, json::object());
    CHECK(described(read.parameters) == described(Parameters{}));
    CHECK(read.parameters.activation->value(0.7) == Parameters{}.activation->value(0.7));
    CHECK(read.depth == ExponentOptions{}.depth);
    CHECK(read.mask == ExponentOptions{}.mask);
  }
  const SampleOptions drawn = read_by("simulate_trajectory", json::object(), read_simulation).sampling;
  CHECK(drawn.width == SampleOptions{}.width);
  CHECK(drawn.networks == SampleOptions{}.networks);
  CHECK(drawn.seed == SampleOptions{}.seed);
  const BlockTask task = read_by("sample_block", {{"networks", 32}}, read_block_task);
  CHECK(task.sampling.width == SampledBlockOptions{}.width);
  CHECK(task.sampling.networks == SampledBlockOptions{}.networks);
  CHECK(task.sampling.heads.count == SampledBlockOptions{}.heads.count);
  CHECK(read_by("critical", json::object(), read_critical).tolerance == CriticalTask{}.tolerance);
  CHECK(read_by("fit_losses", json::object(), read_fit).bootstrap == FitTask{}.bootstrap);
  const GroupStart groups = read_by("simulate_groups", json::object(), read_groups);
  CHECK((groups.q0 == 1 && groups.p_inside == 0.75 && groups.p_across == 0.5));
  CHECK(read_by("simulate_phase", json::object(), read_simulated_phase).c0 == SimulatedPhaseTask{}.c0);
}

TEST_CASE("propagation fields: every row has a default, and values that pass are values of the library") {
  const std::map<std::string, std::pair<double, double>> within{
      {"alpha_A", {0, 1}},     {"alpha_M", {0, 1}},     {"sigma_w", {0, 1e6}},
      {"sigma_A", {0, 1e6}},   {"skip_A", {0, 1e3}},    {"skip_M", {0, 1e3}},
      {"sigma_out", {0, 1e6}}, {"mlp_depth", {1, 1e6}}, {"tokens", {2, 1e9}}};
  const ConfigFields& rows = computation("Parameters").transformer;
  for (const auto& [name, ends] : within) {
    CAPTURE(name);
    const FieldValues& values = find_field(rows, name)->values;
    const bool counts = name == "tokens" || name == "mlp_depth";
    const auto value = [counts](double number) {
      return counts ? json(static_cast<Index>(number)) : json(number);
    };
    for (const double end : {ends.first, ends.second}) {
      CHECK(values.hold(value(end)));
      CHECK_NOTHROW(
          require_parameters("read", transformer_of("Parameters", {{name, value(end)}}).parameters));
    }
    CHECK_FALSE(values.hold(value(ends.first - 1)));
    CHECK_FALSE(values.hold(value(ends.second + 1)));
    CHECK_FALSE(values.hold(std::nan("")));
    CHECK_FALSE(values.hold("1"));
  }
  for (const char* name : names)
    for (const ConfigField& row : computation(name).all()) CHECK_FALSE(row.default_value.empty());
  CHECK_THROWS_AS((void)computation("nothing"), std::out_of_range);
}

TEST_CASE("propagation fields: one value for both branches, and one for each") {
  const auto of = [](const json& given) { return transformer_of("exponents", given).parameters; };
  CHECK(of({{"alpha", 0.2}}).alpha_A == 0.2);
  CHECK(of({{"alpha", 0.2}, {"alpha_M", 0.3}}).alpha_A == 0.2);
  CHECK(of({{"alpha", 0.2}, {"alpha_M", 0.3}}).alpha_M == 0.3);
  CHECK(of({{"skip", 1}}).skip_M == 1);
  CHECK(of({{"skip", 1}, {"skip_A", 0.5}}).skip_A == 0.5);
  CHECK_FALSE(of({{"skip_A", 0.5}}).skip_M);
  CHECK(of({{"sigma_out", "shared"}, {"sigma_w", 3}}).sigma_out.value(3) == 3);
  CHECK(of({{"sigma_out", 2}, {"sigma_w", 3}}).sigma_out.value(3) == 2);
  CHECK(transformer_of("exponents", {{"causal", true}, {"depth", 3}}).mask == AttentionMask::causal);
}

TEST_CASE("propagation fields: what is refused names the field") {
  const auto refused = [](const std::string& name, const json& given, const auto& read) {
    return testing::error_message<NetworkError>([&] { return read_by(name, given, read), 0; });
  };
  CHECK(refused("exponents", {{"alpha_A", 1.5}}, read_exponents) ==
        "exponents.alpha_A: expected a number in [0, 1], got 1.5");
  CHECK(refused("exponents", {{"sigma_out", "both"}}, read_exponents) ==
        "exponents.sigma_out: expected unit, shared or a number in [0, 1e+06], got \"both\"");
  CHECK(refused("trajectory", {{"depth", 2.5}}, read_transformer) ==
        "trajectory.depth: expected an integer from 1 to 10000000, got 2.5");
  CHECK(refused("exponents", {{"alpha", 0}}, read_exponents) ==
        "exponents.alpha: expected a strength above 0 of one branch at least, got 0 for both: then no block "
        "changes anything");
  for (const json& given : {json{{"depth", 2.5}, {"width", 64}}, json{{"depth", 2.5}, {"skip", 1}},
                            json{{"depth", 2.5}, {"causal", true}}})
    CHECK(refused("exponents", given, read_exponents) ==
          "exponents.depth: expected a whole number of blocks from 1 to 1e+07, got 2.5");
  CHECK(refused("exponents", {{"tokens", 10'000'001}, {"causal", true}}, read_exponents) ==
        "exponents.tokens: expected at most 10000000 under a causal mask, got 10000001");
  CHECK(refused("exponents", {{"width", 64}, {"causal", true}}, read_exponents)
            .starts_with("exponents.width: how networks scatter is known for full attention"));
  CHECK(refused("exponents", {{"width", 64}, {"published", true}}, read_exponents)
            .starts_with("exponents.width: networks scatter about the exponents as corrected"));
  CHECK(refused("exponents", {{"skip", 1}, {"published", true}}, read_exponents)
            .starts_with("exponents.published: the printed formulas are those of a fixed point"));
  CHECK(refused("simulate_groups", {{"p_inside", 2}}, read_groups) ==
        "simulate_groups.p_inside: expected p_across <= p_inside <= q0, got 0.5, 2 and 1");
  CHECK(
      refused("trajectory", {{"width", 2}}, read_transformer).starts_with("trajectory.width: unknown field"));
}
