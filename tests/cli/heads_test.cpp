#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/documented_fields.hpp"
#include "cli/program.hpp"
#include "widelimit/specialization/experiments.hpp"
#include "widelimit/version.hpp"

using nlohmann::json;
using widelimit::testing::comments_of;
using widelimit::testing::file_text;
using widelimit::testing::ProgramResult;
using widelimit::testing::run_program;
using widelimit::testing::TemporaryFolder;
using widelimit::testing::without_comments;

namespace {

/// Runs `widelimit heads EXPERIMENT` on a configuration.
ProgramResult run_heads(const TemporaryFolder& folder, const std::string& experiment, const json& config,
                        const std::string& options = "") {
  std::ofstream(folder / "config.json") << config;
  return run_program("heads " + experiment + " " + (folder / "config.json").string() + " " + options);
}

/// The table and summary that `--out FILE.json` writes.
json result_of(const std::string& experiment, const json& config) {
  const TemporaryFolder folder;
  const ProgramResult result =
      run_heads(folder, experiment, config, "--json --out " + (folder / "table.json").string());
  CAPTURE(result.errors);
  REQUIRE(result.code == 0);
  json table = json::parse(file_text(folder / "table.json"));
  CHECK(json::parse(result.output) == table["summary"]);
  return table;
}

void check_heads_fail(const std::string& experiment, const json& config, const std::string& message) {
  CAPTURE(config);
  const TemporaryFolder folder;
  const ProgramResult result = run_heads(folder, experiment, config);
  CHECK(result.code == 1);
  CHECK(result.output.empty());
  CHECK(result.errors == "widelimit: " + (folder / "config.json").string() + ": " + message + "\n");
}

json flip(double nu1, double nu2) { return {{"kind", "flip2"}, {"nu1", nu1}, {"nu2", nu2}}; }

json flow_config() {
  return {{"activation", "softmax1"}, {"prior", flip(2, 2)},  {"tokens", 4}, {"heads", 3}, {"tau", 1},
          {"samples", 200},           {"fresh_samples", 200}, {"records", 5}};
}

json sgd_config() {
  return {{"activation", "bayes"}, {"prior", flip(2, 2)}, {"tokens", 4}, {"heads", 2}, {"tau", 0.2},
          {"dimension", 40},       {"records", 2}};
}

json changed(json config, const json& change) {
  config.merge_patch(change);
  return config;
}

}  // namespace

TEST_CASE("heads flow: the table goes to standard output, the summary beside it") {
  const TemporaryFolder folder;
  const ProgramResult result = run_heads(folder, "flow", flow_config());
  CHECK(result.code == 0);
  const std::string table = without_comments(result.output);
  CHECK(table.rfind("tau,loss,m00,m01,m10,m11,m20,m21,S00,", 0) == 0);
  CHECK(std::count(table.begin(), table.end(), '\n') == 7);
  CHECK(result.errors.find("\nspecialisation_time ") != std::string::npos);
  // The same table in a file, and the same again.
  const ProgramResult to_file =
      run_heads(folder, "flow", flow_config(), "--out " + (folder / "table.csv").string());
  CHECK(file_text(folder / "table.csv") == result.output);
  CHECK(to_file.output == result.errors);
}

TEST_CASE("heads: tables say what they come from") {
  const std::string version = widelimit::version;
  const TemporaryFolder folder;
  const json config = changed(flow_config(), {{"seed", 4}});
  CHECK(comments_of(run_heads(folder, "flow", config).output) ==
        "# widelimit " + version + ", heads flow\n# configuration: " + config.dump() + "\n# seed: 4\n");
  // Fields that are left out have defaults; the seed is told all the same.
  CHECK(result_of("bayes", {{"prior", flip(0, 0)}, {"tokens", 5}, {"samples", 100}}).at("origin") ==
        json{{"widelimit", version},
             {"command", "heads bayes"},
             {"configuration", {{"prior", flip(0, 0)}, {"tokens", 5}, {"samples", 100}}},
             {"seed", 1}});
}

TEST_CASE("heads flow: bayes heads of the posterior stay where they are") {
  // m_h = theta^h, S = 0 and equal biases (equal lengths and probabilities) are optimal: the loss is the
  // risk.
  const double a = std::sqrt(2.0);
  const json start{{"m", {{a, a}, {a, -a}}}, {"S", {{0, 0}, {0, 0}}}};
  const json flow = result_of("flow", {{"activation", "bayes"},
                                       {"prior", flip(2, 2)},
                                       {"tokens", 4},
                                       {"heads", 2},
                                       {"tau", 1},
                                       {"samples", 20'000},
                                       {"start", start}});
  const json risk = result_of("bayes", {{"prior", flip(2, 2)}, {"tokens", 4}, {"samples", 200'000}});
  const double error = std::hypot(flow["summary"]["loss_standard_error"].get<double>(),
                                  risk["summary"]["standard_error"].get<double>());
  CHECK(std::abs(flow["summary"]["loss"].get<double>() - risk["summary"]["bayes_risk"].get<double>()) <
        4 * error);
  // A gradient over n samples is of size n^(-1/2).
  CHECK(std::abs(flow["summary"]["m"][0][0].get<double>() - a) < 4 / std::sqrt(20'000.0));
}

TEST_CASE("heads bayes: without a signal the tokens are guessed") {
  const json table = result_of("bayes", {{"prior", flip(0, 0)}, {"tokens", 5}, {"samples", 100}});
  CHECK(table["columns"] == json({"bayes_risk", "standard_error"}));
  CHECK(table["rows"][0][0].get<double>() == doctest::Approx(0.8).epsilon(1e-12).scale(0));
}

TEST_CASE("heads hessian: the constants of the note") {
  const json table =
      result_of("hessian", {{"activation", "bayes"}, {"prior", flip(2, 2)}, {"tokens", 5}, {"heads", 2}});
  // c3 + c4 = (L - 1) / (H L^2); the split grows at 2 (c3 + c4) lambda.
  CHECK(table["summary"]["c3"].get<double>() == doctest::Approx(0.064));
  CHECK(table["summary"]["c4"].get<double>() == doctest::Approx(0.016));
  CHECK(table["rows"][1][0].get<double>() == doctest::Approx(2));
  CHECK(table["rows"][1][1].get<double>() == doctest::Approx(0.32));
  CHECK(table["rows"][1][2].get<double>() == doctest::Approx(-0.032));
  CHECK(table["summary"]["saddle_split_rate"].get<double>() ==
        doctest::Approx(0.2505).epsilon(0.005).scale(0));
  // One head cannot split: no value, not a number made up.
  const json single =
      result_of("hessian", {{"activation", "softmax"}, {"prior", flip(2, 2)}, {"tokens", 3}, {"heads", 1}});
  CHECK(single["rows"][0][1].is_null());
}

TEST_CASE("heads sgd, compare, prune, phase-transition: small runs") {
  const json trained = result_of("sgd", changed(sgd_config(), {{"planted_m", {{0.3, 0.1}, {0.2, -0.1}}}}));
  CHECK(trained["rows"].size() == 3);
  CHECK(trained["rows"][0][2].get<double>() == doctest::Approx(0.3));
  const json beside =
      result_of("compare", changed(sgd_config(), {{"dimension", 1000}, {"samples", 5000}, {"step", 0.02}}));
  CHECK(beside["rows"].size() == 3);
  CHECK(beside["summary"]["largest_difference_m"].get<double>() < 4 / std::sqrt(1000.0));
  const json pruned = result_of("prune", flow_config());
  CHECK(pruned["columns"] == json({"start", "removed", "loss", "head"}));
  CHECK(pruned["rows"].size() == 15);  // five starts
  CHECK(pruned["rows"][0][3].is_null());
  const json times = result_of("phase-transition", {{"activation", "bayes"},
                                                    {"prior", flip(2, 2)},
                                                    {"tokens", 5},
                                                    {"heads", 2},
                                                    {"tau", 0.2},
                                                    {"dimension", 100},
                                                    {"etas", {0.01}},
                                                    {"samples", 400}});
  CHECK(times["rows"].size() == 2);
  CHECK(times["rows"][0][3].is_null());  // not split by then
  CHECK(times["summary"]["inverse_rate"].get<double>() == doctest::Approx(4).epsilon(0.02).scale(0));
}

TEST_CASE("heads: pictures") {
  const TemporaryFolder folder;
  const std::string picture = (folder / "picture.png").string();
  const ProgramResult none =
      run_heads(folder, "bayes", {{"prior", flip(1, 1)}, {"tokens", 3}}, "--plot " + picture);
  CHECK(none.code == 1);
  CHECK(none.errors == "widelimit: " + folder.string() +
                           "/config.json: heads bayes: there is nothing to draw; leave out --plot\n");
  const ProgramResult nowhere =
      run_heads(folder, "flow", flow_config(), "--out " + (folder / "none").string() + "/table.csv");
  CHECK(nowhere.code == 1);
  CHECK(nowhere.errors == "widelimit: " + folder.string() + "/none/table.csv: its folder does not exist\n");
  const std::string text = (folder / "table.txt").string();
  CHECK(run_heads(folder, "flow", flow_config(), "--out " + text).errors ==
        "widelimit: --out: expected FILE.csv or FILE.json, got " + text + "\n");
  if (std::system("gnuplot --version >/dev/null 2>&1") != 0) {
    MESSAGE("skipped: gnuplot is not installed");
    return;
  }
  CHECK(run_heads(folder, "flow", flow_config(), "--plot " + picture).code == 0);
  CHECK(file_text(folder / "picture.png").rfind("\x89PNG", 0) == 0);
  const json beside = changed(sgd_config(), {{"samples", 500}, {"step", 0.02}});
  CHECK(run_heads(folder, "compare", beside, "--quiet --plot " + picture).code == 0);
}

TEST_CASE("heads: priors that are none") {
  const auto check = [](const json& prior, const std::string& message) {
    check_heads_fail("bayes", {{"prior", prior}, {"tokens", 3}, {"samples", 10}}, message);
  };
  check(flip(-2, 2), "config.prior: prior: variance nu1 must be at least 0 and finite, got -2");
  check(flip(2, -2), "config.prior: prior: variance nu2 must be at least 0 and finite, got -2");
  check({{"kind", "spikes"}, {"features", 3}, {"nu", -1}},
        "config.prior: prior: variance nu must be at least 0 and finite, got -1");
  check({{"kind", "gaussian"}, {"variances", {1, -1}}},
        "config.prior: prior: variances[1] must be at least 0 and finite, got -1");
  check({{"kind", "discrete"}, {"points", json::array()}, {"probs", json::array()}},
        "config.prior: prior: the support is empty; points must hold at least one point with one feature");
  check({{"kind", "discrete"}, {"points", {{1}, {2}}}, {"probs", {0.5, 0.4}}},
        "config.prior: prior: probs must sum to 1 within 1e-12, got 0.9");
  check({{"kind", "discrete"}, {"points", {{1}, {2}}}, {"probs", {1.5, -0.5}}},
        "config.prior: prior: probs must be at least 0 and finite, got -0.5");
  check({{"kind", "flip3"}},
        "config.prior.kind: expected one of flip2, spikes, gaussian, discrete, got \"flip3\"");
  check({{"kind", "flip2"}, {"nu1", 2}}, "config.prior.nu2: expected this field, got none");
  check_heads_fail("bayes", {{"tokens", 3}}, "config.prior: expected this field, got none");
}

TEST_CASE("heads: sizes, names and rates that are wrong") {
  const auto check = [](const json& change, const std::string& message) {
    check_heads_fail("flow", changed(flow_config(), change), message);
  };
  check({{"activation", "gelu"}},
        "config.activation: expected one of softmax, softmaxv, softmax1, bayes, got \"gelu\"");
  check({{"heads", 0}}, "config.heads: expected an integer from 1 to 1000, got 0");
  check({{"heads", 2.5}}, "config.heads: expected an integer from 1 to 1000, got 2.5");
  check({{"tokens", 0}}, "config.tokens: expected an integer from 1 to 10000, got 0");
  check({{"samples", 0}}, "config.samples: expected an integer from 1 to 1000000000, got 0");
  check({{"eta", -1}}, "config.eta: expected a number in [0, 1e+06], got -1");
  check({{"step", 0}}, "config.step: expected a number > 0, got 0");
  check({{"tau", -1}}, "config.tau: expected a number >= 0, got -1");
  check({{"tau", 40}, {"step", 100}},
        "config.tau: expected whole steps of step 100, got 40, which is 0.4 of them");
  check({{"tau", 1}, {"step", 0.3}},
        "config.tau: expected whole steps of step 0.3, got 1, which is 3.33333 of them");
  check({{"heads", 100'000}}, "config.heads: expected an integer from 1 to 1000, got 100000");
  check({{"starts", 1'000'000'000}}, "config.starts: expected an integer from 1 to 100000, got 1000000000");
  check({{"tau", 1e30}}, "config.tau: steps of step 0.1 up to tau 1e+30: expected 0 to 1e+09, got 1e+31");
  check({{"records", 0}}, "config.records: expected an integer from 1 to 10000000, got 0");
  check({{"seed", -1}}, "config.seed: expected an integer >= 0, got -1");
  check({{"batch_noise", -1}}, "config.batch_noise: expected a number in [0, 1000], got -1");
  check({{"stepper", "heun"}},
        "config.stepper: expected one of euler, runge_kutta4, dormand_prince, got \"heun\"");
  check({{"start", {{"m", {{1, 0}, {0, 1}, {1, 1}}}, {"S", {{1, 0}, {0, 1}}}}}},
        "config.start.S: expected 3 x 3 numbers, got 2 x 2");
  check({{"start", {{"m", {{1, 0, 1}, {0, 1, 1}, {1, 1, 1}}}, {"r", {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}}}},
        "config.start.m: expected 3 x 2 numbers, got 3 x 3");
  check(
      {{"start", {{"m", {{1, 0}, {0, 1}, {1, 1}}}, {"r", {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}, {"b", {0, 0}}}}},
      "config.start: start: b must have one entry a head (3), got 2");
  check_heads_fail("prune", changed(flow_config(), {{"normaliser", "all"}}),
                   "config.normaliser: expected one of kept_heads, full_model, got \"all\"");
  check_heads_fail("hessian", {{"activation", "softmax"}, {"prior", flip(2, 2)}, {"tokens", 1}, {"heads", 2}},
                   "config.tokens: expected an integer from 2 to 10000, got 1");
}

TEST_CASE("heads: SGD that cannot run") {
  const auto check = [](const json& change, const std::string& message) {
    check_heads_fail("sgd", changed(sgd_config(), change), message);
  };
  check({{"gamma", 0}}, "config.gamma: expected a number > 0, got 0");
  check({{"batch", 0}}, "config.batch: expected an integer from 1 to 1000000000, got 0");
  check({{"dimension", 7}}, "config.dimension: expected an integer >= 8, got 7");
  check({{"dimension", 0}, {"form", "vector"}},
        "config.dimension: expected an integer from 1 to 1000000000, got 0");
  check({{"eta", -1}}, "config.eta: expected a number in [0, 1e+06], got -1");
  check({{"planted_m", {{1, 0}}}}, "config.planted_m: expected 2 x 2 numbers, got 1 x 2");
  check({{"form", "tensor"}}, "config.form: expected one of gram, vector, got \"tensor\"");
  // Two spikes in one dimension have a singular Gram matrix.
  check({{"dimension", 1}, {"form", "vector"}}, "config.dimension: expected an integer >= 2, got 1");
}

TEST_CASE("heads: every field of every experiment is in its help and in the documentation") {
  for (const auto& experiment : widelimit::specialization::experiments().experiments)
    widelimit::testing::check_fields_are_documented("heads", experiment.name, *experiment.fields);
}

TEST_CASE("heads: files and usage") {
  const TemporaryFolder folder;
  std::ofstream(folder / "text.json") << "tau";
  const ProgramResult text = run_program("heads flow " + (folder / "text.json").string());
  CHECK(text.code == 1);
  CHECK(text.errors.starts_with("widelimit: " + folder.string() +
                                "/text.json: not JSON at line 1, column 2: "));
  const ProgramResult missing = run_program("heads flow " + (folder / "none.json").string());
  CHECK(missing.errors == "widelimit: " + folder.string() + "/none.json: expected a JSON file, found none\n");
  check_heads_fail("flow", json::array(), "config: expected a JSON object, got array");
  CHECK(run_program("heads").code == 2);
  CHECK(run_program("heads fly x.json").code == 2);
  const ProgramResult help = run_program("heads --help");
  CHECK(help.code == 0);
  for (const char* name : {"flow", "sgd", "compare", "bayes", "hessian", "prune", "phase-transition",
                           "feature-times", "digit-times", "resampling"})
    CHECK(help.output.find(name) != std::string::npos);
}
