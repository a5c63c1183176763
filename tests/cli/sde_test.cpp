#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/sde_program.hpp"
#include "widelimit/version.hpp"

using nlohmann::json;
using widelimit::testing::check_sde_fails;
using widelimit::testing::column;
using widelimit::testing::comments_of;
using widelimit::testing::run_program;
using widelimit::testing::SdeRun;
using widelimit::testing::TemporaryFolder;
using widelimit::testing::without_comments;

namespace {

json attention(int samples) {
  return {{"network", "shaped_attention"},
          {"gamma_squared", 0.125},
          {"width", 100},
          {"depth", 50},
          {"samples", samples},
          {"seed", 3}};
}

}  // namespace

TEST_CASE("sde simulate: one token is log-normal") {
  const SdeRun run("simulate",
                   {{"model", "resnet"},
                    {"gamma_squared", 0.5},
                    {"tokens", 1},
                    {"variance", 2},
                    {"horizon", 1.0 / 3},
                    {"paths", 4000}},
                   "--no-pictures --json");
  REQUIRE(run.code == 0);
  CHECK(run.errors.empty());
  json summary = run.read("summary.json");
  CHECK(summary.erase("origin") == 1);
  CHECK(summary == json::parse(run.output));
  CHECK(summary == json::parse(R"({"tokens": 1, "paths": 4000, "cone_exits": 0,
    "ended": {"horizon": 4000, "above": 0, "below": 0, "not_finite": 0},
    "stopped_share": 0.0})"));
  // log V_T ~ N(log 2 - s T, 2 s T) with s = 2 gamma^2 = 1: mean and variance, within 4 standard errors.
  double sum = 0, squares = 0;
  for (const double v : column(run.text("samples.csv"), "V0_0")) {
    sum += std::log(v);
    squares += std::log(v) * std::log(v);
  }
  const double mean = sum / 4000, variance = squares / 4000 - mean * mean;
  CHECK(std::abs(mean - (std::log(2) - 1.0 / 3)) < 4 * std::sqrt(2.0 / 3 / 4000));
  CHECK(std::abs(variance - 2.0 / 3) < 4 * 2.0 / 3 * std::sqrt(2.0 / 4000));
  CHECK(run.text("quantiles.csv").find("V00,0.5,") != std::string::npos);
}

TEST_CASE("sde simulate: paths that left the bounds are reported apart, with a warning") {
  const json config{{"model", "transformer"}, {"gamma_squared", 0.3},
                    {"temperature", 0.9},     {"c_plus", 0.5},
                    {"c_minus", -0.8},        {"V0", {{1.3, 0.4, -0.2}, {0.4, 0.8, 0.1}, {-0.2, 0.1, 1.6}}},
                    {"horizon", 0.4},         {"paths", 2000}};
  const SdeRun run("simulate", config, "--no-pictures");
  REQUIRE(run.code == 0);
  const json summary = run.read("summary.json");
  const int stopped = summary["ended"]["above"].get<int>();
  CHECK(stopped > 20);
  CHECK(stopped < 80);
  CHECK(summary["stopped_share"].get<double>() == doctest::Approx(stopped / 2000.0).epsilon(1e-12));
  CHECK(run.errors.rfind("widelimit: warning: " + std::to_string(stopped) + " of 2000 paths (", 0) == 0);
  const std::string quantiles = run.text("quantiles.csv");
  CHECK(without_comments(quantiles).rfind("time,observable,probability,quantile,standard_error,paths,count\n",
                                          0) == 0);
  CHECK(quantiles.find(",running," + std::to_string(2000 - stopped) + "\n") != std::string::npos);
  CHECK(quantiles.find(",stopped," + std::to_string(stopped) + "\n") != std::string::npos);
  // Their last states inside: no entry is beyond the bound of the eigenvalues.
  for (const double v : column(run.text("samples.csv"), "V0_0")) CHECK(v <= 1e4);
}

TEST_CASE("sde: a run whose paths all stopped says why, with a plain share") {
  // Explodes at once, and by numbers beyond the range of double before a bound is passed.
  const json above{{"model", "attention"}, {"gamma", 0.5}, {"horizon", 1}, {"variance", 1000}, {"paths", 20}};
  const SdeRun left("simulate", above);
  CHECK(left.code == 0);
  CHECK(left.errors ==
        "widelimit: warning: 20 of 20 paths (100 %) left the bounds of the eigenvalues before the horizon; "
        "they "
        "are reported apart, in their last state inside\n");
  const json growing{{"network", "no centring"}, {"gamma", 1}, {"width", 8}, {"depth", 3000}, {"samples", 6},
                     {"upper", 1.79e308}};
  const SdeRun infinite("network", growing);
  CHECK(infinite.code == 0);
  CHECK(infinite.errors ==
        "widelimit: warning: 6 of 6 paths (100 %) became not finite before the horizon; they are reported "
        "apart, in "
        "their last state inside\n");
  CHECK(infinite.read("summary.json")["ended"]["not_finite"] == 6);
  const SdeRun output("output", above);
  CHECK(output.code == 1);
  CHECK(output.errors ==
        "widelimit: " + (output / "config.json").string() +
            ": sde output: 20 of 20 paths (100 %) left the bounds of the eigenvalues before the "
            "horizon; take "
            "an earlier one\n");
}

TEST_CASE("sde simulate: horizon is depth / width, results depend on the seed and not on the threads") {
  const json by_depth{{"model", "transformer"}, {"gamma", 0.3}, {"depth", 30}, {"width", 120}, {"paths", 50}};
  json by_horizon = by_depth;
  by_horizon.erase("depth");
  by_horizon.erase("width");
  by_horizon["horizon"] = 0.25;
  const SdeRun one("simulate", by_depth, "--no-pictures --threads 1");
  const SdeRun three("simulate", by_horizon, "--no-pictures --threads 3");
  REQUIRE(one.code == 0);
  CHECK(without_comments(one.text("samples.csv")) == without_comments(three.text("samples.csv")));
  by_horizon["seed"] = 1;
  CHECK(without_comments(SdeRun("simulate", by_horizon).text("samples.csv")) !=
        without_comments(one.text("samples.csv")));
}

TEST_CASE("sde simulate: the causal mask runs by Euler-Maruyama, the geometric scheme refuses it") {
  json config{{"model", "attention"}, {"gamma", 0.5}, {"mask", "causal"}, {"horizon", 0.05}, {"paths", 20}};
  CHECK(SdeRun("simulate", config).code == 0);
  config["scheme"] = "geometric";
  check_sde_fails(
      "simulate", config,
      ".scheme: expected euler_maruyama or euler_maruyama_dense with a causal mask, got \"geometric\"");
  config["scheme"] = "euler_maruyama_dense";
  CHECK(SdeRun("simulate", config).code == 0);
}

TEST_CASE("sde: files say what they come from") {
  const json model{{"model", "mlp"}, {"times", {0.1, 0.2}}, {"paths", 3}, {"seed", 9}};
  const json layers{
      {"network", "shaped_attention"}, {"gamma", 0.3}, {"width", 20}, {"layers", {1, 2}}, {"samples", 3}};
  const auto origin = [](const char* command, const json& config, int seed) {
    return json{{"widelimit", widelimit::version},
                {"command", std::string("sde ") + command},
                {"configuration", config},
                {"seed", seed}};
  };
  const SdeRun paths("simulate", model, "--no-pictures --trajectories"),
      networks("network", layers, "--no-pictures --trajectories");
  for (const char* file : {"quantiles.csv", "samples.csv", "trajectories.csv"}) {
    CHECK(comments_of(paths.text(file)) == std::string("# widelimit ") + widelimit::version +
                                               ", sde simulate\n# configuration: " + model.dump() +
                                               "\n# seed: 9\n");
    CHECK(comments_of(networks.text(file)).ends_with(layers.dump() + "\n# seed: 0\n"));
  }
  CHECK(paths.read("summary.json").at("origin") == origin("simulate", model, 9));
  CHECK(networks.read("summary.json").at("origin") == origin("network", layers, 0));
  CHECK(SdeRun("compare", layers).read("compare.json").at("origin") == origin("compare", layers, 0));
  CHECK(SdeRun("stopping-time", layers).read("stopping_times.json").at("origin") ==
        origin("stopping-time", layers, 0));
}

TEST_CASE("sde: trajectories hold every time, samples the last") {
  const json config{
      {"model", "attention"}, {"gamma", 0.5}, {"times", {0.05, 0.1, 0.2}}, {"paths", 40}, {"upper", 2}};
  const SdeRun run("simulate", config, "--no-pictures --trajectories");
  REQUIRE(run.code == 0);
  const std::vector<double> time = column(run.text("trajectories.csv"), "time"),
                            path = column(run.text("trajectories.csv"), "path"),
                            entries = column(run.text("trajectories.csv"), "V0_1");
  REQUIRE(time.size() == 120);
  const std::vector<double> last = column(run.text("samples.csv"), "V0_1");
  bool moved = false;
  for (std::size_t i = 0; i < 40; ++i) {
    CHECK(time[3 * i] == 0.05);
    CHECK(path[3 * i + 2] == static_cast<double>(i));
    CHECK(entries[3 * i + 2] == last[i]);
    moved = moved || entries[3 * i] != entries[3 * i + 1];
  }
  CHECK(moved);
  // As many rows of stopped paths at the last time as the summary counts.
  const std::string text = run.text("trajectories.csv");
  int stopped = 0;
  for (std::size_t at = text.find(",0.2,stopped,"); at != std::string::npos;
       at = text.find(",0.2,stopped,", at + 1))
    ++stopped;
  CHECK(stopped > 0);
  CHECK(stopped == run.read("summary.json")["ended"]["above"].get<int>());
  CHECK_FALSE(std::filesystem::exists(SdeRun("simulate", config) / "out" / "trajectories.csv"));
}

TEST_CASE("sde network: one input keeps its mean") {
  json config = attention(4000);
  config["tokens"] = 1;
  const SdeRun run("network", config);
  REQUIRE(run.code == 0);
  double sum = 0, squares = 0;
  for (const double v : column(run.text("samples.csv"), "V0_0")) {
    sum += v;
    squares += v * v;
  }
  const double mean = sum / 4000, deviation = std::sqrt(squares / 4000 - mean * mean);
  CHECK(deviation > 0.3);
  CHECK(std::abs(mean - 1) < 4 * deviation / std::sqrt(4000.0));
}

TEST_CASE("sde network: unit weights in the unshaped baselines only") {
  for (const char* network : {"unshaped", "unshaped_pre_ln"}) {
    const SdeRun run("network", {{"network", network},
                                 {"gamma", 1},
                                 {"lambda", 1},
                                 {"width", 20},
                                 {"layers", {1, 4}},
                                 {"samples", 20}});
    CHECK(run.code == 0);
    // Both layers are kept: time = layer / width.
    CHECK(run.text("quantiles.csv").find("\n0.05,V00,") != std::string::npos);
    CHECK(run.text("quantiles.csv").find("\n0.2,V00,") != std::string::npos);
  }
  json shaped = attention(10);
  shaped.erase("gamma_squared");
  shaped["gamma"] = 1;
  shaped["lambda"] = 1;
  check_sde_fails("network", shaped,
                  ".lambda: expected lambda^2 + gamma^2 = 1, got lambda = gamma = 1, which only the unshaped "
                  "networks take");
}

TEST_CASE("sde network: interventions go by the names of the list") {
  json config = attention(20);
  config["network"] = "centring only";
  CHECK(SdeRun("network", config).code == 0);
  config["network"] = "vit";
  check_sde_fails(
      "network", config,
      ".network: must be one of shaped_transformer, shaped_attention, shaped_resnet, mlp, unshaped, "
      "unshaped_pre_ln, unshaped_post_ln, shaped, no identity, no centring, no width in "
      "temperature, identity only, "
      "centring only, width in temperature only, standard softmax; got vit");
}

TEST_CASE("sde compare: a network agrees with its limit, and not with another time") {
  const SdeRun run("compare", attention(2000));
  REQUIRE(run.code == 0);
  const json distances = run.read("compare.json")["kolmogorov_smirnov"];
  CHECK(distances.size() == 6);
  for (const char* quantity : {"V00", "V01", "rho01", "abs_rho01", "V11", "largest_eigenvalue"}) {
    CHECK(distances[quantity]["p_value"].get<double>() > 1e-3);
    CHECK(run.output.find(quantity) != std::string::npos);
  }
  // Standard softmax at 1 / sqrt(key width) has no SDE limit.
  json unshaped = attention(10);
  unshaped["network"] = "unshaped";
  check_sde_fails(
      "compare", unshaped,
      ".network: limiting_model: only shaped networks have an SDE limit: identity and centring weight 1, "
      "temperature tau_0 sqrt(n n_k), no normalisation");
}

TEST_CASE("sde stopping-time: nothing moves at gamma = 0, more tokens explode sooner") {
  json config = attention(200);
  config.erase("gamma_squared");
  config["variance"] = 100;
  config["tokens"] = 4;
  config["gammas"] = {0, 0.5};
  const SdeRun run("stopping-time", config);
  REQUIRE(run.code == 0);
  const json rows = run.read("stopping_times.json").at("stopping_times");
  REQUIRE(rows.size() == 2);
  for (const json& quantile : rows[0]["quantiles"]) CHECK(quantile["time"] == 0.5);
  CHECK(rows[1]["gamma"] == 0.5);
  CHECK(rows[1]["quantiles"][1]["time"].get<double>() < 0.3);
  CHECK(rows[1]["counts"]["ended"]["above"].get<int>() > 100);
  CHECK(run.output.find("gamma 0.5 ") != std::string::npos);
}

TEST_CASE("sde stopping-time: residual weights are refused before any work") {
  json config = attention(10);
  config.erase("gamma_squared");
  const auto check = [&](const json& gammas, const std::string& message) {
    config["gammas"] = gammas;
    check_sde_fails("stopping-time", config, message);
  };
  check(json::array(), ".gammas: expected a list of different numbers in [0, 1], at least one, got []");
  check({0.2, 1.5}, ".gammas: expected a list of different numbers in [0, 1], at least one, got [0.2,1.5]");
  check({0.2, -0.5}, ".gammas: expected a list of different numbers in [0, 1], at least one, got [0.2,-0.5]");
  config["lambda"] = 1;
  check({0.2}, ".gammas: cannot be combined with lambda; give one of them");
}

TEST_CASE("sde: pictures") {
  if (std::system("gnuplot --version >/dev/null 2>&1") != 0) {
    MESSAGE("skipped: gnuplot is not installed");
    return;
  }
  const std::string signature = "\x89PNG";
  const SdeRun paths("simulate", {{"model", "mlp"}, {"horizon", 0.1}, {"paths", 50}}, "");
  REQUIRE(paths.code == 0);
  CHECK(paths.text("densities.png").rfind(signature, 0) == 0);
  CHECK(SdeRun("compare", attention(50), "").text("compare.png").rfind(signature, 0) == 0);
  CHECK(SdeRun("stopping-time", attention(50), "").text("stopping_times.png").rfind(signature, 0) == 0);
}

TEST_CASE("sde: a start that is no covariance") {
  const auto check = [](const json& v0, const std::string& message) {
    check_sde_fails("simulate", {{"model", "attention"}, {"gamma", 0.5}, {"horizon", 0.1}, {"V0", v0}},
                    message);
  };
  check({{1, 2}, {2, 1}}, ".V0: a covariance must be positive semidefinite, got eigenvalues from -1 to 3");
  check({{1, 0.2}, {0.3, 1}}, ".V0: a covariance must be symmetric, got 0.3 at (1, 0) and 0.2 at (0, 1)");
  check({{1, 0}, {0, 0}},
        ".V0: every token must have a variance above 0, got 0 at (1, 1): leave that token out");
  check({{1, 0.2}}, ".V0: expected 1 rows of 1 numbers, got 2 in row 0");
  check({{1, 0.2}, {0.2}}, ".V0: expected 2 rows of 2 numbers, got 1 in row 1");
  check({{1, "x"}, {0.2, 1}}, ".V0: expected a number in row 0, got \"x\"");
  check(json::array(), ".V0: expected a list of filled rows, got []");
  check(2, ".V0: expected a list of rows, got 2");
  json network = attention(10);
  network["rho0"] = 1.2;
  check_sde_fails("network", network, ".rho0: expected a number in [-1, 1], got 1.2");
  network["rho0"] = 0.2;
  network["tokens"] = 0;
  check_sde_fails("network", network, ".tokens: expected an integer from 1 to 1000, got 0");
  network["tokens"] = 101;
  check_sde_fails("network", network, ".width: expected at least 101 for 101 tokens, got 100");
}

TEST_CASE("sde: residual weights, temperatures and sizes") {
  const auto check = [](const json& change, const std::string& message) {
    json config{{"model", "attention"}, {"gamma", 0.5}, {"horizon", 0.1}, {"paths", 10}};
    config.merge_patch(change);
    check_sde_fails("simulate", config, message);
  };
  check({{"lambda", 0.6}},
        ".lambda: ResidualWeights: lambda and gamma must be at least 0 with lambda^2 + gamma^2 = 1, got "
        "lambda = "
        "0.6, "
        "gamma = 0.5, sum of squares 0.61");
  check({{"lambda", 1}, {"gamma", 1}},
        ".lambda: expected lambda^2 + gamma^2 = 1, got lambda = gamma = 1, which only the unshaped networks "
        "take");
  check({{"gamma", nullptr}, {"gamma_squared", 1.5}}, ".gamma_squared: expected a number in [0, 1], got 1.5");
  check({{"gamma", -0.5}}, ".gamma: expected a number in [0, 1], got -0.5");
  check({{"gamma_squared", 0.25}}, ".gamma_squared: give either gamma_squared or gamma");
  check({{"temperature", 0}}, ".temperature: expected a number in [1e-06, 1e+06], got 0");
  check({{"temperature", -1}}, ".temperature: expected a number in [1e-06, 1e+06], got -1");
  check({{"horizon", -0.1}}, ".horizon: expected a number > 0, got -0.1");
  check({{"horizon", nullptr}, {"depth", 10}, {"width", 0}},
        ".width: expected an integer from 1 to 1000000000, got 0");
  check({{"horizon", nullptr}, {"depth", 0}, {"width", 10}},
        ".depth: expected an integer from 1 to 1000000000, got 0");
  check({{"paths", 0}}, ".paths: expected an integer from 1 to 1000000000, got 0");
  check({{"max_step", 0}}, ".max_step: expected a number > 0, got 0");
  check({{"seed", -1}}, ".seed: expected an integer >= 0, got -1");
  check({{"lower", 0.9}, {"upper", 1}},
        ".upper: start: the eigenvalues of V_0 must lie within the stopping bounds 0.9 and 1");
  check({{"scheme", "heun"}},
        ".scheme: expected one of geometric, euler_maruyama, euler_maruyama_dense, got \"heun\"");
  json network = attention(10);
  network["temperature"] = 0;
  check_sde_fails("network", network, ".temperature: expected a number in [1e-06, 1e+06], got 0");
  network["temperature"] = 1;
  network["lambda"] = 0.9;
  check_sde_fails("network", network,
                  ".lambda: ResidualWeights: lambda and gamma must be at least 0 with lambda^2 + gamma^2 = "
                  "1, got lambda = "
                  "0.9, gamma = 0.3535533905932738, sum of squares 0.935");
  network.erase("lambda");
  network["layers"] = {3, 2};
  network.erase("depth");
  check_sde_fails(
      "network", network,
      ".layers: expected a list of increasing integers from 1 to 1000000000, at least one, got [3,2]");
}

TEST_CASE("sde: files that cannot be read or made") {
  const TemporaryFolder folder;
  const auto run = [&](const std::string& config, const std::string& out) {
    return run_program("sde simulate " + (folder / config).string() + " --out " + (folder / out).string());
  };
  CHECK(run("none.json", "out").errors ==
        "widelimit: " + folder.string() + "/none.json: expected a JSON file, found none\n");
  std::ofstream(folder / "text.json") << "gamma = 1";
  CHECK(run("text.json", "out").errors.rfind("widelimit: " + folder.string() + "/text.json: not JSON", 0) ==
        0);
  std::ofstream(folder / "list.json") << "[1]";
  CHECK(run("list.json", "out").errors ==
        "widelimit: " + folder.string() + "/list.json: expected a JSON object, got array\n");
  std::ofstream(folder / "whole.json") << R"({"model": "mlp", "horizon": 0.1, "paths": 8})";
  const auto result = run("whole.json", "list.json/out");
  CHECK(result.code == 1);
  CHECK(result.errors.find("cannot make this folder") != std::string::npos);
  CHECK(run_program("sde").code == 2);
  CHECK(run_program("sde simulate").code == 2);
  CHECK(run_program("sde simulate x.json --out y --threads -1").code == 2);
}
