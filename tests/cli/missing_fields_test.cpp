// A field that a configuration lacks is the one that the error names, in every command that reads one.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "cli/program.hpp"
#include "widelimit/covariance_sde/configuration.hpp"
#include "widelimit/covariance_sde/experiments.hpp"
#include "widelimit/fields/config_fields.hpp"
#include "widelimit/specialization/experiments.hpp"

using nlohmann::json;
using widelimit::ConfigField;
using widelimit::ConfigFields;
using widelimit::testing::ProgramResult;
using widelimit::testing::run_program;
using widelimit::testing::TemporaryFolder;

namespace {

/// A command and a small configuration with which it works.
struct Working {
  const char* command;
  const char* config;
};

const std::vector<Working>& working_sde() {
  static const std::vector<Working> all{
      {"simulate", R"({"model": "transformer", "gamma": 0.3, "depth": 2, "width": 40, "paths": 3})"},
      {"simulate", R"({"model": "resnet", "gamma_squared": 0.1, "horizon": 0.05, "paths": 3})"},
      {"simulate",
       R"({"model": "attention", "gammas": [0.1, 0.3], "temperatures": [1, 2], "times": [0.02, 0.05],
         "paths": 3})"},
      {"network",
       R"({"network": "shaped_transformer", "gamma": 0.3, "width": 12, "depth": 2, "samples": 3})"},
      {"network", R"({"network": "mlp", "width": 12, "layers": [1, 2], "samples": 3})"},
      {"compare", R"({"network": "shaped_resnet", "gamma": 0.3, "width": 12, "depth": 2, "samples": 9})"},
      {"stopping-time",
       R"({"network": "shaped_attention", "gammas": [0.1], "temperatures": [1, 2], "width": 12,
         "depth": 2, "samples": 3})"},
      {"output", R"({"model": "mlp", "horizon": 0.05, "paths": 9})"},
      {"output", R"({"network": "mlp", "width": 12, "depth": 2, "samples": 9})"},
      {"entropy", R"({"network": "unshaped", "gamma": 0.3, "width": 12, "depth": 2, "samples": 3})"},
      {"explosion", R"({"model": "resnet", "gamma": 0.3, "times": [0.05], "paths": 3})"},
      {"law", R"({"model": "resnet", "gamma": 0.3, "horizon": 0.1})"},
      {"law", R"({"model": "attention", "gamma_squared": 0.125, "rho0": 0.2, "times": [0.25]})"},
      {"flow", R"({"model": "resnet", "gamma": 0.3, "times": [0.1]})"},
      {"flow", R"({"flow": "commuting", "shortcut": "unit", "rho0": 0.2, "times": [0.1]})"},
      {"coefficients", R"({"model": "transformer", "gamma": 0.3, "V0": [[1, 0.2], [0.2, 1]]})"},
      {"gradients",
       R"({"width": 12, "depth": 2, "samples": 2, "networks": [{"network": "unshaped", "gamma": 0.5}]})"}};
  return all;
}

const std::vector<Working>& working_heads() {
  static const std::vector<Working> all{
      {"flow",
       R"({"activation": "softmax1", "prior": {"kind": "flip2", "nu1": 2, "nu2": 2}, "tokens": 4, "heads": 2,
         "tau": 1, "samples": 50, "fresh_samples": 50, "records": 2})"},
      {"prune",
       R"({"activation": "softmax1", "prior": {"kind": "spikes", "features": 2, "nu": 2}, "tokens": 4,
         "heads": 2, "tau": 1, "samples": 50, "fresh_samples": 50, "records": 2, "starts": 1})"},
      {"attention",
       R"({"activation": "softmax1", "prior": {"kind": "gaussian", "variances": [2, 1]}, "tokens": 4,
         "heads": 2, "tau": 1, "samples": 50, "fresh_samples": 50, "records": 2, "starts": 1})"},
      {"sgd",
       R"({"activation": "bayes", "prior": {"kind": "flip2", "nu1": 2, "nu2": 2}, "tokens": 4, "heads": 2,
         "dimension": 30, "tau": 0.5, "records": 2})"},
      {"compare",
       R"({"activation": "bayes", "prior": {"kind": "flip2", "nu1": 2, "nu2": 2}, "tokens": 4, "heads": 2,
         "dimension": 30, "tau": 0.4, "records": 2, "samples": 50})"},
      {"bayes",
       R"({"prior": {"kind": "discrete", "points": [[1, 0], [0, 1]], "probs": [0.5, 0.5]}, "tokens": 4,
         "samples": 100})"},
      {"hessian", R"({"activation": "softmax1", "prior": {"kind": "flip2", "nu1": 2, "nu2": 2}, "tokens": 4,
         "heads": 2})"},
      {"phase-transition",
       R"({"activations": ["softmax", "bayes"], "prior": {"kind": "flip2", "nu1": 2, "nu2": 2},
         "tokens": 4, "heads": 2, "dimension": 30, "etas": [1], "tau": 0.5, "samples": 50, "starts": 1})"},
      {"phase-transition",
       R"({"activation": "softmax", "prior": {"kind": "flip2", "nu1": 2, "nu2": 2}, "tokens": 4,
         "heads": 2, "dimensions": [30, 40], "etas": [1], "tau": 0.5, "samples": 50, "starts": 1})"},
      {"feature-times",
       R"({"activation": "softmax", "prior": {"kind": "flip2", "nu1": 2, "nu2": 2}, "tokens": 4,
         "heads": 2, "dimension": 30, "etas": [1], "tau": 0.5, "samples": 50, "starts": 1})"},
      {"digits", R"({"activation": "softmax", "images": 20, "heads": 2, "tau": 0.5, "fresh_samples": 20,
         "risk_samples": 20, "batch": 5})"},
      {"digit-times",
       R"({"activation": "softmax", "images": 20, "heads": 2, "tau": 0.5, "etas": [1], "starts": 1,
         "batch": 5})"},
      {"resampling", R"({"activation": "softmax", "prior": {"kind": "flip2", "nu1": 2, "nu2": 2}, "tokens": 4,
         "heads": 2, "tau": 0.5, "samples": 50, "records": 2})"}};
  return all;
}

ProgramResult run_on(const std::string& command, const json& config) {
  const TemporaryFolder folder;
  std::ofstream(folder / "config.json") << config;
  const std::string out =
      command.starts_with("sde") ? " --no-pictures --quiet --out " + (folder / "out").string() : "";
  ProgramResult result = run_program(command + " " + (folder / "config.json").string() + out);
  const std::string file = (folder / "config.json").string() + ": ";
  if (const auto place = result.errors.find(file); place != std::string::npos)
    result.errors.erase(place, file.size());
  return result;
}

bool names(const std::string& message, const std::string& field) {
  return std::regex_search(message, std::regex("\\b" + field + "\\b"));
}

/// Removes each field in turn: it has a default, or the error names it, alone or among those that may stand for it.
void check_missing_fields(const std::string& command, const json& config, const ConfigFields& fields) {
  CAPTURE(command);
  CAPTURE(config);
  const ProgramResult whole = run_on(command, config);
  REQUIRE_MESSAGE(whole.code == 0, whole.errors);
  for (const ConfigField& field : fields) {
    if (!config.contains(field.name)) continue;
    json rest = config;
    rest.erase(field.name);
    const ProgramResult result = run_on(command, rest);
    CAPTURE(field.name);
    CAPTURE(result.errors);
    if (field.default_value.empty()) CHECK(result.code == 1);
    if (result.code == 0 || !field.default_json().is_null()) continue;
    CHECK(result.errors.starts_with("widelimit: config."));
    CHECK(result.errors.find(": expected this field") != std::string::npos);
    CHECK(names(result.errors, field.name));
    if (result.errors.find(": expected this field, or ") == std::string::npos)
      CHECK(result.errors ==
            std::string("widelimit: config.") + field.name + ": expected this field, got none\n");
  }
}

std::set<std::string> names_of(const widelimit::results::Theory& theory) {
  std::set<std::string> names;
  for (const auto& experiment : theory.experiments) names.insert(experiment.name);
  return names;
}

}  // namespace

TEST_CASE("missing fields of sde: the error names the one that is missing") {
  std::set<std::string> tried;
  for (const auto& [name, config] : working_sde()) {
    tried.insert(name);
    const json read = json::parse(config);
    const bool networks = std::string(name) == "output" && read.contains("network");
    check_missing_fields(std::string("sde ") + name, read,
                         widelimit::covariance_sde::command_fields(networks ? "output of networks" : name));
  }
  CHECK(tried == names_of(widelimit::covariance_sde::experiments()));
}

TEST_CASE("missing fields of heads: the error names the one that is missing") {
  std::set<std::string> tried;
  for (const auto& [name, config] : working_heads()) {
    tried.insert(name);
    check_missing_fields(std::string("heads ") + name, json::parse(config),
                         widelimit::specialization::experiment_fields(name));
  }
  CHECK(tried == names_of(widelimit::specialization::experiments()));
}

TEST_CASE("missing fields of priors and starts: the error names the one that is missing") {
  const json flow = json::parse(working_heads().front().config);
  const char* priors[] = {R"({"kind": "flip2", "nu1": 2, "nu2": 2})",
                          R"({"kind": "spikes", "features": 2, "nu": 2})",
                          R"({"kind": "gaussian", "variances": [2, 1]})",
                          R"({"kind": "gaussian", "nu1": 2, "nu2": 1, "features": 3})",
                          R"({"kind": "discrete", "points": [[1, 0], [0, 1]], "probs": [0.5, 0.5]})"};
  for (const char* text : priors) {
    const json prior = json::parse(text);
    for (const auto& [field, value] : prior.items()) {
      json rest = flow;
      rest["prior"] = prior;
      rest["prior"].erase(field);
      const ProgramResult result = run_on("heads flow", rest);
      CAPTURE(rest.dump());
      CAPTURE(field);
      CAPTURE(result.errors);
      CHECK(result.code == 1);
      CHECK(result.errors.starts_with("widelimit: config.prior"));
      CHECK(names(result.errors, field));
    }
  }
  const json start{{"m", {{1, 0}, {0, 1}}}, {"S", {{1, 0}, {0, 1}}}};
  for (const auto& [field, value] : start.items()) {
    json rest = flow;
    rest["start"] = start;
    rest["start"].erase(field);
    const ProgramResult result = run_on("heads flow", rest);
    CAPTURE(field);
    CAPTURE(result.errors);
    CHECK(result.code == 1);
    CHECK(result.errors.starts_with("widelimit: config.start"));
    CHECK(names(result.errors, field));
  }
}
