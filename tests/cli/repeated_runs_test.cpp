// What an output says of itself is enough to repeat the run.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/program.hpp"
#include "cli/sde_program.hpp"
#include "widelimit/data/npy.hpp"

using nlohmann::json;
using widelimit::testing::comments_of;
using widelimit::testing::file_text;
using widelimit::testing::lines_of;
using widelimit::testing::run_program;
using widelimit::testing::SdeRun;
using widelimit::testing::TemporaryFolder;

namespace {

/// " --mlp-depth 2" of "mlp_depth": 2; flags that are false are left out.
std::string option_text(std::string name, const json& value) {
  std::replace(name.begin(), name.end(), '_', '-');
  if (value.is_boolean()) return value.get<bool>() ? " --" + name : "";
  if (value.is_array()) {
    std::string all;
    for (const json& one : value) all += option_text(name, one);
    return all;
  }
  return " --" + name + " '" + (value.is_string() ? value.get<std::string>() : value.dump()) + "'";
}

/// The command line that an origin describes; blocks and Gram matrices become files of the folder.
std::string command_of(const json& origin, const TemporaryFolder& folder) {
  std::string command = origin.at("command");
  std::string options;
  for (const auto& [name, value] : origin.at("configuration").items()) {
    if (name == "network") {
      std::ofstream(folder / "again.json") << value.dump();
      const bool beside = command == "propagation measure";
      options += (beside ? " --network " : " ") + (folder / "again.json").string();
    } else if (name == "gram") {
      xt::xarray<double> gram = xt::xarray<double>::from_shape({value.size(), value.size()});
      for (std::size_t i = 0; i < value.size(); ++i)
        for (std::size_t j = 0; j < value.size(); ++j) gram(i, j) = value[i][j].get<double>();
      widelimit::data::write_npy(folder / "again.npy", gram);
      options += " --gram " + (folder / "again.npy").string();
    } else if (name == "file" || name == "folder") {
      options += " " + value.get<std::string>();
    } else {
      options += option_text(name, value);
    }
  }
  if (origin.contains("seed")) options += option_text("seed", origin.at("seed"));
  return command + options;
}

/// Runs a command, and again what its JSON and its CSV say of it.
void check_repeats(const std::string& arguments, const TemporaryFolder& folder) {
  CAPTURE(arguments);
  const auto first = run_program("propagation " + arguments);
  CAPTURE(first.errors);
  REQUIRE(first.code == 0);
  const std::string again = command_of(json::parse(first.output).at("origin"), folder);
  CAPTURE(again);
  const auto second = run_program(again);
  CAPTURE(second.errors);
  CHECK(second.output == first.output);
  const std::string file = (folder / "table.csv").string();
  REQUIRE(run_program("propagation " + arguments + " --out " + file).code == 0);
  // "# widelimit VERSION, COMMAND", "# configuration: JSON", "# seed: NUMBER".
  const auto lines = lines_of(comments_of(file_text(file)));
  json origin{{"command", lines[0].substr(lines[0].find(", ") + 2)},
              {"configuration", json::parse(lines[1].substr(lines[1].find(": ") + 2))}};
  if (lines.size() > 2 && lines[2].starts_with("# seed: ")) origin["seed"] = json::parse(lines[2].substr(8));
  CHECK(run_program(command_of(origin, folder)).output == first.output);
}

}  // namespace

TEST_CASE("repeated runs: closed forms and simulations of propagation") {
  const TemporaryFolder folder;
  const std::string network =
      " --tokens 7 --alpha .4 --sigma-w 1.7 --sigma-out shared --mlp-depth 1 --activation erf";
  check_repeats("trajectory --depth 3 --q0 2 --c0 .3 --causal --sigma-A .7" + network, folder);
  check_repeats("exponents --depth 2.5 --sigma-out 1.25 --alpha-A .3 --tokens 7", folder);
  check_repeats("phase --x alpha_A:.2:.8:3 --y sigma_w:1:3:3 --alpha-M .3 --sigma-out shared --one-block",
                folder);
  for (const std::string free : {"strengths-and-gain", "sigma-w", "balanced"})
    check_repeats("critical --tokens 17 --sigma-out shared --free " + free, folder);
  for (const std::string free : {"alpha-A", "alpha-M"})
    check_repeats("critical --tokens 17 --sigma-w 2.6 --free " + free, folder);
  const std::string drawn = network + " --width 8 --networks 3 --seed 5";
  for (const std::string command :
       {"trajectory --depth 2", "histograms --depth 2 --q0 1 --c0 .4", "angle", "angle --causal --depth 3",
        "gradient --depth 2", "gradient --depth 2 --q0 2 --c0 .1", "groups --depth 2 --p-across .2"})
    check_repeats("simulate " + command + drawn, folder);
}

TEST_CASE("repeated runs: blocks, activations and fits of propagation") {
  const TemporaryFolder folder;
  const std::string block = (folder / "block.json").string();
  REQUIRE(run_program("propagation exponents --tokens 5 --sigma-A 2 --block " + block).code == 0);
  check_repeats("network " + block + " --tokens 4 --depth 2 --q0 2 --c0 .3 --gradients", folder);
  check_repeats(
      "network " + block + " --tokens 3 --depth 1 --gradients --networks 2 --width 8 --heads 2 --seed 3",
      folder);
  check_repeats("network " + block +
                    " --tokens 3 --depth 1 --q0 2 --vary 'layers[0].branches[1].scale=.1:.9:3' --vary "
                    "'layers[1].branches[1].scale=.2:.8:2:log'",
                folder);
  xt::xarray<double> gram{{1.0, 0.25}, {0.25, 1.0 / 3}};
  widelimit::data::write_npy(folder / "start.npy", gram);
  check_repeats("network " + block + " --depth 1 --gram " + (folder / "start.npy").string(), folder);
  const TemporaryFolder activations;
  for (const char* name : {"layer_0.npy", "layer_1.npy"}) {
    xt::xarray<double> layer = xt::ones<double>({2, 2, 4});
    layer(0, 0, 1) = name[6] == '0' ? -1 : 3;
    layer(1, 1, 2) = 0.5;
    widelimit::data::write_npy(activations / name, layer);
  }
  check_repeats("measure " + activations.string() + " --network " + block, folder);
  check_repeats("measure " + activations.string(), folder);
  std::ofstream(folder / "runs.csv") << "alpha,loss\n.5,2\n.4,1\n.3,2\n.45,1.5\n.2,1.1\n";
  check_repeats(
      "fit " + (folder / "runs.csv").string() + " --depth 6 --sigma-w 2 --bootstrap 20 --classes 10", folder);
  std::ofstream(folder / "exponents.csv") << "lambda_a,lambda_g,loss\n.5,.1,2\n.4,.2,1\n-.3,-.1,2\n.2,.5,1\n";
  check_repeats("fit " + (folder / "exponents.csv").string() + " --bootstrap 20", folder);
}

TEST_CASE("repeated runs: sde") {
  const json network{{"network", "shaped_transformer"},
                     {"gamma", 0.3},
                     {"width", 12},
                     {"depth", 2},
                     {"samples", 3},
                     {"seed", 4}},
      sde{{"model", "transformer"}, {"gamma", 0.3}, {"horizon", 0.05}, {"paths", 3}, {"seed", 4}};
  const auto check = [](const std::string& command, const json& config, const std::string& report,
                        const std::vector<std::string>& tables) {
    CAPTURE(command);
    const SdeRun first(command, config);
    CAPTURE(first.errors);
    REQUIRE(first.code == 0);
    const json origin = report.empty() ? json() : first.read(report).at("origin");
    for (const std::string& table : tables) {
      const auto lines = lines_of(comments_of(first.text(table)));
      const json again = json::parse(lines[1].substr(lines[1].find(": ") + 2));
      CHECK(SdeRun(command, again).text(table) == first.text(table));
      if (!report.empty()) CHECK(again == origin.at("configuration"));
    }
    if (!report.empty())
      CHECK(SdeRun(command, origin.at("configuration")).text(report) == first.text(report));
  };
  check("simulate", sde, "summary.json", {"quantiles.csv", "samples.csv"});
  check("network", network, "summary.json", {"quantiles.csv", "samples.csv"});
  check("compare", network, "compare.json", {});
  check("stopping-time",
        {{"network", "shaped_attention"}, {"gammas", {0.2, 0.4}}, {"width", 8}, {"depth", 2}, {"samples", 3}},
        "stopping_times.json", {});
  check("output", sde, "output.json", {"outputs.csv"});
  check("output", network, "output.json", {"outputs.csv"});
  check("entropy", network, "", {"entropy.csv"});
  check("explosion", sde, "explosion.json", {});
  check("law", {{"model", "resnet"}, {"gamma", 0.3}, {"horizon", 0.05}}, "law.json", {"law.csv"});
  check("flow", {{"model", "resnet"}, {"gamma", 0.3}, {"horizon", 0.05}}, "", {"flow.csv"});
  check("gradients",
        {{"networks", {{{"network", "shaped_resnet"}, {"gamma", 0.3}}}},
         {"width", 8},
         {"depth", 2},
         {"samples", 2}},
        "gradients.json", {"gradients.csv"});
}

TEST_CASE("repeated runs: heads") {
  const json task{{"prior", {{"kind", "flip2"}, {"nu1", 2}, {"nu2", 1}}},
                  {"tokens", 4},
                  {"activation", "softmax1"},
                  {"heads", 2}};
  const auto with = [&](const json& more) {
    json config = task;
    config.update(more);
    return config;
  };
  const json flow{{"tau", 1}, {"samples", 50}, {"fresh_samples", 60}, {"records", 2}},
      sgd{{"dimension", 30}, {"tau", 0.1}, {"records", 1}, {"seed", 3}},
      times{{"dimension", 30}, {"tau", 1}, {"etas", {1, 2}}, {"samples", 50}};
  const std::vector<std::pair<std::string, json>> runs{
      {"flow", with(flow)},
      {"prune", with(flow)},
      {"sgd", with(sgd)},
      {"compare", with({{"dimension", 30}, {"tau", 0.1}, {"records", 1}, {"samples", 50}})},
      {"bayes", {{"prior", task["prior"]}, {"tokens", 4}, {"samples", 100}}},
      {"hessian", task},
      {"phase-transition", with(times)},
      {"feature-times", with(times)},
      {"digit-times",
       {{"activation", "softmax"},
        {"images", 40},
        {"heads", 2},
        {"tokens", 3},
        {"etas", {1}},
        {"tau", 0.5},
        {"batch", 20}}},
      {"resampling", with({{"tau", 1}, {"samples", 50}})}};
  for (const auto& [name, config] : runs) {
    CAPTURE(name);
    const TemporaryFolder folder;
    const std::string file = (folder / "c.json").string(), out = (folder / "o.json").string();
    std::ofstream(file) << config;
    const auto first = run_program("heads " + name + " " + file + " --out " + out);
    CAPTURE(first.errors);
    REQUIRE(first.code == 0);
    const std::string text = file_text(out), table = run_program("heads " + name + " " + file).output;
    const json origin = json::parse(text).at("origin");
    std::ofstream(file) << origin.at("configuration");
    REQUIRE(run_program("heads " + name + " " + file + " --out " + out).code == 0);
    CHECK(file_text(out) == text);
    const auto lines = lines_of(comments_of(table));
    std::ofstream(file) << lines[1].substr(lines[1].find(": ") + 2);
    CHECK(run_program("heads " + name + " " + file).output == table);
  }
}
