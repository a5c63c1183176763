#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <utility>

#include "cli/documented_fields.hpp"
#include "cli/sde_program.hpp"
#include "widelimit/covariance_sde/experiments.hpp"

using nlohmann::json;
using widelimit::testing::check_sde_fails;
using widelimit::testing::column;
using widelimit::testing::SdeRun;
using widelimit::testing::without_comments;

namespace {

json transformer_network() {
  return {{"network", "shaped_transformer"},
          {"gamma_squared", 0.25},
          {"width", 48},
          {"depth", 24},
          {"samples", 300}};
}

json with(json config, const json& change) {
  config.merge_patch(change);
  return config;
}

}  // namespace

TEST_CASE("sde: every field of every command is in its help and in the documentation") {
  for (const auto& experiment : widelimit::covariance_sde::experiments().experiments)
    widelimit::testing::check_fields_are_documented("sde", experiment.name, *experiment.fields);
}

TEST_CASE("sde compare: heads, masks, hidden widths and two residual weights go to the limit as well") {
  const json config = with(transformer_network(), {{"heads", 4},
                                                   {"key_width", 3},
                                                   {"mask", "causal"},
                                                   {"hidden_width", 24},
                                                   {"gamma_feedforward", 0.2},
                                                   {"tokens", 3},
                                                   {"samples", 1000}});
  const SdeRun run("compare", config);
  CAPTURE(run.errors);
  REQUIRE(run.code == 0);
  const json report = run.read("compare.json");
  for (const json& one : report.at("kolmogorov_smirnov")) CHECK(one["p_value"].get<double>() > 1e-4);
  CHECK(SdeRun("network", with(config, {{"network", "unshaped_post_ln"}, {"c_plus", nullptr}})).code == 0);
}

TEST_CASE("sde simulate: models take what networks take, and refuse what they do not have") {
  const json config{{"model", "transformer"}, {"gamma", 0.5},     {"gamma_feedforward", 0.2}, {"heads", 4},
                    {"hidden_ratio", 2},      {"mask", "causal"}, {"horizon", 0.1},           {"paths", 50}};
  CHECK(SdeRun("simulate", config).code == 0);
  check_sde_fails("simulate", with(config, {{"heads", 0}}),
                  ".heads: expected an integer from 1 to 10000, got 0");
  check_sde_fails("simulate", with(config, {{"hidden_ratio", 0}}),
                  ".hidden_ratio: expected a number in [1e-06, 1e+06], got 0");
  check_sde_fails("simulate", with(config, {{"model", "attention"}, {"hidden_ratio", nullptr}}),
                  ".gamma_feedforward: has no meaning together with the other fields: leave it out");
  check_sde_fails("simulate", with(config, {{"gamma_squared_feedforward", 0.1}}),
                  ".gamma_squared_feedforward: give either gamma_squared_feedforward or gamma_feedforward");
  check_sde_fails("simulate", with(config, {{"times", {0.1}}}),
                  ".horizon: has no meaning together with the other fields: leave it out");
  check_sde_fails("network", with(transformer_network(), {{"heads", 5}}),
                  ".heads: expected a divisor of the width, 48, got 5");
}

TEST_CASE("sde law: the quantiles of the note") {
  // docs/theory/covariance-sde.md, section 7.
  const SdeRun correlation("law",
                           {{"model", "resnet"}, {"gamma_squared", 0.5}, {"depth", 100}, {"width", 300}});
  REQUIRE(correlation.code == 0);
  const auto quantiles = column(correlation.text("law.csv"), "quantile");
  REQUIRE(quantiles.size() == 7);
  CHECK(quantiles[1] == doctest::Approx(-0.62593541).scale(0).epsilon(1e-7));
  CHECK(quantiles[5] == doctest::Approx(0.85061109).scale(0).epsilon(1e-7));
  const SdeRun gap("law", {{"model", "attention"}, {"gamma_squared", 0.125}, {"times", {0.75}}});
  REQUIRE(gap.code == 0);
  CHECK(column(gap.text("law.csv"), "quantile")[3] == doctest::Approx(0.33800129).scale(0).epsilon(1e-6));
  CHECK(gap.read("law.json")["observable"] == "gap");
  check_sde_fails("law", {{"model", "transformer"}, {"gamma", 0.5}, {"horizon", 1}},
                  ".model: expected one of attention, resnet, mlp, got \"transformer\"");
  check_sde_fails("law", {{"model", "resnet"}, {"gamma", 0.5}, {"horizon", 1}, {"tokens", 3}},
                  ".tokens: expected an integer from 2 to 2, got 3");
}

TEST_CASE("sde law: errors name fields") {
  const json resnet{{"model", "resnet"}, {"gamma_squared", 0.1}, {"horizon", 1}};
  const json attention{{"model", "attention"}, {"gamma", 0.1}, {"horizon", 1}};
  check_sde_fails("law", with(resnet, {{"rho0", 1}}),
                  ".rho0: expected a correlation in (-1, 1) for sde law, got 1");
  check_sde_fails("law", with(resnet, {{"V0", {{1, 1}, {1, 1}}}}),
                  ".V0: expected a correlation in (-1, 1) for sde law, got 1");
  check_sde_fails("law", with(resnet, {{"gamma_squared", 0}}),
                  ".gamma_squared: expected a number > 0 for sde law, without which nothing moves, got 0");
  check_sde_fails("law", with(attention, {{"gamma", 0}}),
                  ".gamma: expected a number > 0 for sde law, without which nothing moves, got 0");
  check_sde_fails("law", with(attention, {{"rho0", 1}}),
                  ".rho0: expected two tokens with a gap (V00 + V11 - 2 V01) / 4 above 0, got 0");
  check_sde_fails("law", with(attention, {{"mask", "causal"}}),
                  ".mask: expected full for sde law: under a causal mask no law is known, got \"causal\"");
  check_sde_fails(
      "law", with(attention, {{"horizon", 1e30}}),
      ".horizon: expected a time of at most 5.02513e+10 for the exact law of this model, got 1e+30");
}

TEST_CASE("sde law: a time out of reach leaves the laws of the others") {
  const json attention{{"model", "attention"}, {"gamma_squared", 0.125}};
  const SdeRun run("law", with(attention, {{"times", {0.75, 1e30}}}));
  CHECK(run.code == 0);
  CHECK(run.errors ==
        "widelimit: warning: " + (run / "config.json").string() +
            ": config.times[1]: expected a time of at most 4.26667e+09 for the exact law of this model, "
            "got 1e+30\n");
  CHECK(column(run.text("law.csv"), "quantile")[3] == doctest::Approx(0.33800129).scale(0).epsilon(1e-6));
  CHECK(column(run.text("law.csv"), "time").size() == 7);
  const json laws = run.read("law.json")["laws"];
  REQUIRE(laws.size() == 2);
  CHECK(laws[0]["not_exploded"].get<double>() > 0.99);
  CHECK(laws[1]["not_exploded"].is_null());
  CHECK(laws[1]["missing"].get<std::string>().find("expected a time of at most 4.26667e+09") == 0);
}

TEST_CASE("sde law: late correlations say what they lack of 1") {
  const SdeRun run("law", {{"model", "resnet"}, {"gamma_squared", 0.5}, {"times", {1, 400, 3000}}});
  CAPTURE(run.errors);
  REQUIRE(run.code == 0);
  const auto rho = column(run.text("law.csv"), "quantile");
  const auto lines = widelimit::testing::lines_of(without_comments(run.text("law.csv")));
  REQUIRE(lines.size() == 1 + 21);
  CHECK(lines[0] == "time,observable,probability,quantile,one_minus_abs");
  const auto lacking = [&](std::size_t line) { return lines[line].substr(lines[line].rfind(',') + 1); };
  CHECK(std::stod(lacking(4)) == doctest::Approx(1 - std::abs(rho[3])).scale(0).epsilon(1e-9));
  // artanh rho of about s T / 2 = 200, and 1500 beyond the range of double.
  CHECK(-std::log(std::stod(lacking(11)) / 2) / 2 == doctest::Approx(200).scale(0).epsilon(0.03));
  CHECK(lacking(18).find("e-130") != std::string::npos);
}

TEST_CASE("sde explosion: the interval holds the exact probability") {
  const SdeRun run("explosion", {{"model", "attention"},
                                 {"gamma_squared", 0.125},
                                 {"temperature", 0.25},
                                 {"times", {2, 30}},
                                 {"max_step", 0.05},
                                 {"paths", 400},
                                 {"seed", 2}});
  CAPTURE(run.errors);
  REQUIRE(run.code == 0);
  const json report = run.read("explosion.json");
  CHECK(report["exact_at_any_time"].get<double>() == doctest::Approx(0.6139009606).epsilon(1e-8).scale(0));
  for (const json& row : report["explosion"]) {
    CHECK(row["interval_95"][0].get<double>() - 0.03 < row["exact"].get<double>());
    CHECK(row["exact"].get<double>() < row["interval_95"][1].get<double>() + 0.03);
    CHECK(row["interval_95"][0].get<double>() < row["probability"].get<double>());
  }
  CHECK(report["explosion"][1]["probability"].get<double>() > 0.5);
}

TEST_CASE("sde explosion: paths beyond the bound count by what they still do") {
  // Of those that pass 1e4 here, as many return as explode.
  for (const double upper : {1e4, 1e6}) {
    const SdeRun run("explosion", {{"model", "attention"},
                                   {"gamma_squared", 0.45},
                                   {"V0", {{1, -0.2}, {-0.2, 1}}},
                                   {"times", {2}},
                                   {"max_step", 0.05},
                                   {"upper", upper},
                                   {"paths", 2000}});
    CAPTURE(run.errors);
    REQUIRE(run.code == 0);
    const json row = run.read("explosion.json")["explosion"][0];
    CHECK(row["exact"].get<double>() == doctest::Approx(0.0240).epsilon(0.05).scale(0));
    CHECK(row["interval_95"][0].get<double>() < row["exact"].get<double>());
    CHECK(row["exact"].get<double>() < row["interval_95"][1].get<double>());
    CHECK(row["probability"].get<double>() == doctest::Approx(row["beyond_upper"].get<double>() / 2000 *
                                                              row["explodes_from_there"].get<double>()));
    CHECK(row["explodes_from_there"].get<double>() < 0.98);
  }
}

TEST_CASE("sde explosion: the default bound gives the exact share near gamma^2 = 1/2 too [slow]") {
  const SdeRun run("explosion", {{"model", "attention"},
                                 {"gamma_squared", 0.48},
                                 {"V0", {{1.2, 0}, {0, 1.2}}},
                                 {"times", {3}},
                                 {"seed", 11},
                                 {"paths", 60000}});
  CAPTURE(run.errors);
  REQUIRE(run.code == 0);
  const json row = run.read("explosion.json")["explosion"][0];
  CHECK(row["exact"].get<double>() == doctest::Approx(0.0129).epsilon(0.01).scale(0));
  CHECK(row["interval_95"][0].get<double>() < row["exact"].get<double>());
  CHECK(row["exact"].get<double>() < row["interval_95"][1].get<double>());
}

TEST_CASE("sde explosion: a bound that is not far up is refused") {
  const SdeRun run("explosion", {{"model", "attention"},
                                 {"gamma_squared", 0.45},
                                 {"V0", {{1, -0.2}, {-0.2, 1}}},
                                 {"times", {2}},
                                 {"upper", 10}});
  CHECK(run.code != 0);
  CHECK(run.errors.find("config.upper: expected a number >= 1000") != std::string::npos);
}

TEST_CASE("sde flow: the commuting limit of the note, and a drift") {
  const SdeRun limit("flow", {{"flow", "commuting"}, {"times", {0.5, 1}}});
  REQUIRE(limit.code == 0);
  const auto v01 = column(limit.text("flow.csv"), "V0_1"), v00 = column(limit.text("flow.csv"), "V0_0");
  CHECK(v01[1] / v00[1] == doctest::Approx(0.3839566908).scale(0).epsilon(1e-9));
  CHECK(v00[1] == doctest::Approx(std::exp(1)));
  // One time may be a horizon, as of all commands; a depth and a width are none of this limit's times.
  const SdeRun horizon("flow", {{"flow", "commuting"}, {"horizon", 1}, {"points", 2}});
  REQUIRE(horizon.code == 0);
  CHECK(without_comments(horizon.text("flow.csv")) == without_comments(limit.text("flow.csv")));
  check_sde_fails("flow", {{"flow", "commuting"}}, ".times: expected this field, or horizon, got none");
  check_sde_fails("flow", {{"flow", "commuting"}, {"times", {1}}, {"depth", 3}},
                  ".depth: has no effect with the commuting flow, of any depth: leave it out");
  const SdeRun drift("flow", {{"model", "transformer"}, {"gamma", 0.5}, {"times", {0.1, 0.2}}});
  CHECK(drift.code == 0);
  // The gap of the drift alone explodes at tau^2 / (2 gamma^2 Delta^2) = 1 / (.5 * .16) = 12.5.
  const json exploding{{"model", "attention"}, {"gamma", 0.5}, {"times", {1, 12, 13, 20}}};
  const SdeRun part("flow", exploding);
  CHECK(part.code == 0);
  CHECK(column(part.text("flow.csv"), "time") == std::vector<double>{1, 12});
  CHECK(part.errors.find("warning: " + (part / "config.json").string() +
                         ": config.times[2]: expected times before the flow explodes, got 13") !=
        std::string::npos);
  // First steps of far times are long: they must not stand for an explosion, nor hide one.
  for (const double far : {10.0, 20.0, 100.0, 1e6}) {
    CAPTURE(far);
    const SdeRun rows(
        "flow", {{"model", "attention"}, {"gamma_squared", 0.25}, {"variance", 10}, {"times", {0.001, far}}});
    CHECK(rows.code == 0);
    CHECK(column(rows.text("flow.csv"), "time") == std::vector<double>{0.001});
    CHECK(rows.errors.find("config.times[1]: expected times before the flow explodes, got") !=
          std::string::npos);
  }
  const SdeRun none("flow", with(exploding, {{"times", {13}}}));
  CHECK(none.code == 1);
  CHECK(none.errors.find("config.times[0]: expected times before the flow explodes, got 13") !=
        std::string::npos);
  check_sde_fails("flow", {{"flow", "commuting"}, {"times", {1}}, {"gamma", 0.5}},
                  ".gamma: has no meaning together with the other fields: leave it out");
}

TEST_CASE("sde output: one token's kurtosis, of the SDE and of networks") {
  const SdeRun run("output", {{"model", "resnet"},
                              {"gamma_squared", 0.5},
                              {"tokens", 1},
                              {"horizon", 0.25},
                              {"paths", 4000},
                              {"outputs", 2}});
  REQUIRE(run.code == 0);
  // 3 exp(2 s T), s = 2 gamma^2 = 1; the relative error of E V^2 is some 4 / sqrt(4000).
  CHECK(run.read("output.json")["kurtosis"][0].get<double>() ==
        doctest::Approx(3 * std::exp(0.5)).scale(0).epsilon(0.2));
  CHECK(column(run.text("outputs.csv"), "x0").size() == 8000);
  CHECK(SdeRun("output", with(transformer_network(), {{"outputs", 3}})).code == 0);
  check_sde_fails("output", with(transformer_network(), {{"outputs", 0}}),
                  ".outputs: expected an integer from 1 to 1000000, got 0");
}

TEST_CASE("sde entropy: near ln m, and below by what the expansion says") {
  const SdeRun run("entropy", {{"network", "shaped_attention"},
                               {"gamma_squared", 0.125},
                               {"width", 100},
                               {"layers", {1, 20}},
                               {"samples", 2000}});
  REQUIRE(run.code == 0);
  const auto entropy = column(run.text("entropy.csv"), "entropy"),
             expansion = column(run.text("entropy.csv"), "expansion"),
             error = column(run.text("entropy.csv"), "standard_error");
  REQUIRE(entropy.size() == 4);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(entropy[i] < std::log(2));
    CHECK(std::abs(entropy[i] - expansion[i]) < 4 * error[i] + 0.1 * (std::log(2) - expansion[i]));
  }
  check_sde_fails("entropy", {{"network", "shaped_resnet"}, {"gamma", 0.5}, {"width", 9}, {"depth", 1}},
                  ".network: softmax_entropy_expansion: the network must have an attention block, got none");
}

TEST_CASE("sde gradients: networks side by side") {
  const json config{{"width", 16},
                    {"depth", 4},
                    {"samples", 6},
                    {"tokens", 3},
                    {"networks",
                     {{{"network", "shaped_transformer"}, {"gamma_squared", 0.1}, {"heads", 4}},
                      {{"network", "unshaped_pre_ln"}, {"gamma", 1}, {"lambda", 1}},
                      {{"label", "Post-LN, causal"},
                       {"network", "unshaped_post_ln"},
                       {"gamma", 1},
                       {"lambda", 1},
                       {"mask", "causal"}}}}};
  const SdeRun run("gradients", config);
  CAPTURE(run.errors);
  REQUIRE(run.code == 0);
  const json networks = run.read("gradients.json")["networks"];
  REQUIRE(networks.size() == 3);
  CHECK(networks[2]["label"] == "Post-LN, causal");
  for (const json& network : networks) {
    CHECK(network["tokens"].size() == 5);
    for (const char* parameter : {"query", "key", "value", "hidden", "output"})
      CHECK(network["parameters"][parameter].size() == 4);
  }
  const auto lines = widelimit::testing::lines_of(without_comments(run.text("gradients.csv")));
  CHECK(lines.size() == 1 + 3 * (5 + 5 * 4));
  CHECK(lines.back().starts_with("\"Post-LN, causal\",output,4,"));
  check_sde_fails(
      "gradients", with(config, {{"networks", {{{"network", "unshaped"}, {"gamma", 0.5}, {"width", 3}}}}}),
      "config.networks[0].width: unknown field; known are label, network, gamma_squared, gamma, lambda, "
      "gamma_squared_feedforward, gamma_feedforward, lambda_feedforward, temperature, heads, mask, "
      "c_plus, c_minus, g1, g2, key_width, hidden_width");
  check_sde_fails("gradients", with(config, {{"networks", json::array()}}),
                  ".networks: must be a list of networks, got []");
}

TEST_CASE("sde stopping-time: a grid over gamma and temperature") {
  const json config{{"network", "shaped_attention"},
                    {"gammas", {0.2, 0.6}},
                    {"temperatures", {0.5, 4}},
                    {"width", 40},
                    {"depth", 40},
                    {"tokens", 4},
                    {"variance", 100},
                    {"samples", 60}};
  const SdeRun run("stopping-time", config);
  CAPTURE(run.errors);
  REQUIRE(run.code == 0);
  const json rows = run.read("stopping_times.json")["stopping_times"];
  REQUIRE(rows.size() == 4);
  CHECK(rows[1]["gamma"] == 0.6);
  CHECK(rows[2]["temperature"] == 4);
  const auto median = [&](std::size_t i) { return rows[i]["quantiles"][1]["time"].get<double>(); };
  CHECK(median(1) < median(0));
  CHECK(median(0) <= median(2));
  check_sde_fails("stopping-time", with(config, {{"temperature", 1}}),
                  ".temperatures: cannot be combined with temperature; give one of them");
  check_sde_fails(
      "stopping-time", with(config, {{"temperatures", {1, 0}}}),
      ".temperatures: expected a list of different numbers in [1e-06, 1e+06], at least one, got [1,0]");
}

TEST_CASE("sde coefficients: the numbers of the theory") {
  const json config{
      {"model", "transformer"}, {"gamma_squared", 0.6},
      {"temperature", 0.8},     {"c_plus", 0.5},
      {"c_minus", -0.75},       {"V0", {{1.2, 0.3, -0.1}, {0.3, 0.9, 0.25}, {-0.1, 0.25, 1.5}}}};
  const SdeRun run("coefficients", config);
  CAPTURE(run.errors);
  REQUIRE(run.code == 0);
  const json report = run.read("coefficients.json");
  const auto near = [](double value) { return doctest::Approx(value).scale(0).epsilon(1e-9); };
  CHECK(report["drift_relu"][0][1].get<double>() == near(0.09125567));
  CHECK(report["drift_attention"][0][2].get<double>() == near(0.01123263889));
  CHECK(report["drift"][1][2].get<double>() == near(0.1772796545));
  CHECK(report["coordinates"] == json{{0, 0}, {0, 1}, {0, 2}, {1, 1}, {1, 2}, {2, 2}});
  CHECK(report["A"][1][1].get<double>() == near(0.14645));
  CHECK(report["Sigma"][1][2].get<double>() == near(0.523290625).epsilon(1e-8));
  // S_1^{ad,bw} = V^{ab} C^{dw}; the mean of centred tokens is 0.
  double sum = 0;
  for (const json& one : report["S1"][0][1][2]) sum += one.get<double>();
  CHECK(sum == doctest::Approx(0).scale(1).epsilon(1e-15));
  CHECK(report["S2"].size() == 3);
  CHECK(column(run.text("coefficients.csv"), "drift")[1] == near(0.1363077533));
  const SdeRun plain("coefficients", {{"model", "mlp"}});
  CHECK(plain.code == 0);
  CHECK_FALSE(plain.read("coefficients.json").contains("S1"));
  check_sde_fails("coefficients", {{"model", "mlp"}, {"tokens", 25}},
                  ".tokens: expected an integer from 1 to 24, got 25");
}

TEST_CASE("sde: lists of gammas and temperatures are points of every table") {
  const json lists{{"model", "attention"}, {"gammas", {0.2, 0.5}}, {"temperatures", {0.5, 2}},
                   {"horizon", 0.1},       {"points", 2},          {"paths", 60}};
  const SdeRun run("simulate", lists, "--no-pictures --trajectories");
  CAPTURE(run.errors);
  REQUIRE(run.code == 0);
  for (const char* file :
       {"quantiles.csv", "means.csv", "correlations.csv", "samples.csv", "trajectories.csv"}) {
    CAPTURE(file);
    CHECK(without_comments(run.text(file)).starts_with("gamma,temperature,"));
  }
  const json points = run.read("summary.json")["points"];
  REQUIRE(points.size() == 4);
  CHECK(points[1]["gamma"] == 0.5);
  CHECK(points[2]["temperature"] == 2);
  // Each point is the run of its own.
  const SdeRun one(
      "simulate",
      {{"model", "attention"}, {"gamma", 0.5}, {"temperature", 2}, {"times", {0.05, 0.1}}, {"paths", 60}});
  const auto all = column(run.text("samples.csv"), "V0_1"), alone = column(one.text("samples.csv"), "V0_1");
  REQUIRE(all.size() == 240);
  CHECK(std::equal(alone.begin(), alone.end(), all.begin() + 180));
  const auto means = column(one.text("means.csv"), "mean"),
             times = column(one.text("correlations.csv"), "time");
  CHECK(times == std::vector<double>{0.05, 0.1});
  double sum = 0;
  for (const double v : alone) sum += v;
  CHECK(means[6 + 1] == doctest::Approx(sum / 60));  // V01 at the second time
  check_sde_fails("simulate", with(lists, {{"model", "resnet"}}),
                  ".temperatures: resnet has no temperature: leave it out");
  check_sde_fails("simulate", {{"model", "mlp"}, {"gammas", {0.1}}, {"horizon", 1}},
                  ".gammas: an mlp has no residual weights: leave it out");
  check_sde_fails("simulate", with(lists, {{"gamma", 0.1}}),
                  ".gammas: cannot be combined with gamma; give one of them");
  const json network{{"network", "shaped_attention"},
                     {"gammas", {0.2, 0.5}},
                     {"width", 16},
                     {"depth", 8},
                     {"points", 4},
                     {"samples", 40}};
  CHECK(SdeRun("network", network).read("summary.json")["points"].size() == 2);
  const SdeRun compared("compare", network);
  REQUIRE(compared.code == 0);
  const json reports = compared.read("compare.json")["points"];
  REQUIRE(reports.size() == 2);
  CHECK(reports[1]["estimates"]["abs_rho01"]["sde"]["quantile_95"]["value"].get<double>() > 0.2);
  CHECK(without_comments(compared.text("correlations.csv")).starts_with("gamma,source,time,mean,"));
  CHECK(column(compared.text("correlations.csv"), "time").size() == 16);
  const SdeRun laws("law", {{"model", "resnet"}, {"gammas", {0.3, 0.7}}, {"times", {0.5, 1}}});
  REQUIRE(laws.code == 0);
  CHECK(column(laws.text("law.csv"), "gamma").size() == 28);
  CHECK(laws.read("law.json")["laws"][2]["gamma"] == 0.7);
}

TEST_CASE("sde network: a list of networks is each of them, and rows begin with their labels") {
  const json common{{"width", 16}, {"layers", {4, 8}}, {"samples", 40}, {"temperature", 2}};
  const json shaped{{"network", "shaped_attention"}, {"gamma", 0.3}};
  const json post{{"network", "unshaped_post_ln"}, {"gamma", 1}, {"lambda", 1}};
  json networks = json::array({"shaped_attention", with(post, {{"label", "Post-LN, g = 1"}})});
  json both = with(common, {{"networks", networks}, {"gamma", 0.3}});
  both.erase("temperature");
  const SdeRun run("network", both, "");
  CAPTURE(run.errors);
  REQUIRE(run.code == 0);
  json plain = common;
  plain.erase("temperature");
  const SdeRun alone("network", with(plain, shaped)), last("network", with(plain, post));
  const auto rows = [](const SdeRun& of) {
    const std::string text = widelimit::testing::without_comments(of.text("correlations.csv"));
    return text.substr(text.find('\n') + 1);
  };
  std::string expected;
  for (const auto& [label, one] :
       {std::pair{"\"shaped_attention\"", &alone}, std::pair{"\"Post-LN, g = 1\"", &last}}) {
    std::istringstream lines(rows(*one));
    for (std::string line; std::getline(lines, line);) expected += fmt::format("{},{}\n", label, line);
  }
  CHECK(rows(run) == expected);
  CHECK(run.read("summary.json").at("points")[1].at("network") == "Post-LN, g = 1");
  CHECK(std::filesystem::exists(run / "out" / "densities.png"));
  // Interventions, and grids within each network.
  const SdeRun grid("network", with(common, {{"networks", {"shaped_attention", "shaped_transformer"}},
                                             {"gammas", {0.2, 0.4}}}));
  CHECK(grid.read("summary.json").at("points").size() == 4);
  const auto fails = [&](const json& more, const std::string& message) {
    check_sde_fails("network", with(with(common, {{"gamma", 0.3}}), more), message);
  };
  fails({{"networks", json::array()}}, ".networks: expected a list of networks, got []");
  fails({{"networks", {"mlp", "mlp"}}}, ".networks: \"mlp\" appears twice; give each a label of its own");
  fails({{"networks", json::array({{{"network", "mlp"}, {"label", ""}}})}},
        ".networks[0].label: expected a text that is not empty, got \"\"");
  fails({{"networks", {"mlp", "shaped_resnet"}}, {"network", "mlp"}},
        ".networks: cannot be combined with network; give one of them");
}

TEST_CASE("sde: a multilayer perceptron beside its limit, and weights of the terms of attention") {
  const SdeRun mlp("compare",
                   {{"network", "mlp"}, {"width", 100}, {"depth", 50}, {"samples", 1000}, {"rho0", 0.2}});
  CAPTURE(mlp.errors);
  REQUIRE(mlp.code == 0);
  for (const char* quantity : {"V00", "V01", "rho01"})
    CHECK(mlp.read("compare.json")["kolmogorov_smirnov"][quantity]["p_value"].get<double>() > 1e-4);
  const json config{
      {"network", "shaped_attention"}, {"gamma", 0.5}, {"width", 32}, {"depth", 4}, {"samples", 50}};
  const SdeRun shaped("network", with(config, {{"g1", 0}, {"g2", 1}})),
      named("network", with(config, {{"network", "no identity"}}));
  CHECK(without_comments(shaped.text("samples.csv")) == without_comments(named.text("samples.csv")));
  check_sde_fails(
      "network", with(config, {{"network", "unshaped"}, {"gamma", 1}, {"lambda", 1}, {"g1", 1}}),
      ".lambda: expected lambda^2 + gamma^2 = 1 with g1 or g2 other than 0, got lambda = gamma = 1");
  check_sde_fails("network", with(config, {{"network", "no identity"}, {"g1", 0}}),
                  ".g1: has no meaning together with the other fields: leave it out");
  check_sde_fails(
      "compare", with(config, {{"g1", 0.5}}),
      ".network: limiting_model: only shaped networks have an SDE limit: identity and centring weight 1, "
      "temperature tau_0 sqrt(n n_k), no normalisation");
}

TEST_CASE("sde entropy: of Pre-LN and Post-LN baselines") {
  // Standard attention of normalised tokens: logits of variance 1, entropies well below ln 3.
  for (const char* network : {"unshaped_pre_ln", "unshaped_post_ln"}) {
    const SdeRun run("entropy", {{"network", network},
                                 {"gamma", 1},
                                 {"lambda", 1},
                                 {"width", 24},
                                 {"tokens", 3},
                                 {"layers", {1, 3}},
                                 {"samples", 200}});
    CAPTURE(run.errors);
    REQUIRE(run.code == 0);
    for (const double entropy : column(run.text("entropy.csv"), "entropy")) {
      CHECK(entropy < std::log(3));
      CHECK(entropy > 0.5);
    }
  }
}

TEST_CASE("sde: pictures of the other commands") {
  if (std::system("gnuplot --version >/dev/null 2>&1") != 0) {
    MESSAGE("skipped: gnuplot is not installed");
    return;
  }
  const auto drawn = [](const std::string& command, const json& config, const std::string& picture) {
    CAPTURE(command);
    const SdeRun run(command, config, "");
    CAPTURE(run.errors);
    CHECK(run.code == 0);
    CHECK(run.text(picture).rfind("\x89PNG", 0) == 0);
  };
  const json model{{"model", "attention"}, {"gamma", 0.4}, {"times", {0.1, 0.2}}};
  drawn("law", model, "law.png");
  drawn("law", {{"model", "resnet"}, {"gammas", {0.5, 0.7}}, {"times", {1, 3000}}}, "law.png");
  drawn("simulate",
        {{"model", "attention"}, {"gammas", {0.4, 0.5}}, {"horizon", 0.2}, {"points", 3}, {"paths", 50}},
        "correlations.png");
  drawn("compare", {{"network", "mlp"}, {"width", 20}, {"layers", {2, 4}}, {"samples", 50}},
        "correlations.png");
  drawn("compare",
        {{"network", "shaped_resnet"}, {"gammas", {0.4, 0.5}}, {"width", 20}, {"depth", 4}, {"samples", 50}},
        "quantiles.png");
  // All has exploded by the last time; the first spans decades.
  drawn("law",
        {{"model", "attention"}, {"gamma_squared", 0.01}, {"temperature", 0.01}, {"times", {1e-3, 1, 100}}},
        "law.png");
  drawn("flow", model, "flow.png");
  drawn("explosion", with(model, {{"paths", 20}}), "explosion.png");
  drawn("output", with(model, {{"paths", 50}}), "output.png");
  const json network = with(transformer_network(), {{"samples", 40}, {"depth", 4}});
  drawn("entropy", network, "entropy.png");
  drawn("stopping-time",
        with(network, {{"temperatures", {1, 2}}, {"gammas", {0.1, 0.2}}, {"gamma_squared", nullptr}}),
        "stopping_times.png");
  drawn("gradients",
        {{"width", 8},
         {"depth", 3},
         {"samples", 2},
         {"networks", {{{"network", "shaped_resnet"}, {"gamma", 0.5}}}}},
        "gradients.png");
}

TEST_CASE("sde network: networks without a reduction are drawn with their weights, and it is said") {
  const auto said = [](const json& change) {
    const SdeRun run("network", with({{"network", "unshaped_pre_ln"},
                                      {"gamma", 0.5},
                                      {"width", 12},
                                      {"tokens", 3},
                                      {"depth", 2},
                                      {"samples", 20}},
                                     change));
    CAPTURE(run.errors);
    REQUIRE(run.code == 0);
    return std::pair{run.errors,
                     run.read("summary.json").at("origin").at("configuration").value("sampling", "")};
  };
  CHECK(said(json::object()) == std::pair<std::string, std::string>{"", ""});
  CHECK(said({{"heads", 2}}) ==
        std::pair<std::string, std::string>{
            "widelimit: sampling: explicit_weights, because Pre-LN with 2 heads has no reduction\n",
            "explicit_weights"});
  CHECK(said({{"network", "unshaped_post_ln"}}) ==
        std::pair<std::string, std::string>{
            "widelimit: sampling: explicit_weights, because Post-LN has no reduction\n", "explicit_weights"});
  CHECK(said({{"network", "unshaped_post_ln"}, {"sampling", "explicit_weights"}}).first.empty());
  CHECK(
      said({{"network", "shaped_transformer"}, {"heads", 6}})
          .first.find("slices of width / heads = 2 channels have no reduction, being fewer than 3 tokens") !=
      std::string::npos);
}
