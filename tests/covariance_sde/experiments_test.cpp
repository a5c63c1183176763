#include "widelimit/covariance_sde/experiments.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/error_message.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::covariance_sde;
using nlohmann::json;

namespace {

results::Results run(const char* name, const char* config, const results::Control& control = {}) {
  return experiments().run(name, json::parse(config), control);
}

}  // namespace

TEST_CASE("experiments: the tables and pictures that a row names are there") {
  const std::vector<std::pair<const char*, const char*>> small{
      {"simulate", R"({"model": "attention", "gamma_squared": 0.1, "times": [0.1, 0.2], "paths": 8})"},
      {"network",
       R"({"network": "shaped_attention", "gamma_squared": 0.1, "width": 8, "depth": 4, "samples": 4})"},
      {"compare",
       R"({"network": "shaped_attention", "gamma_squared": 0.1, "width": 8, "depth": 4, "samples": 4})"},
      {"stopping-time",
       R"({"network": "shaped_attention", "gammas": [0.1, 0.2], "width": 8, "depth": 4, "samples": 4})"},
      {"output", R"({"model": "attention", "gamma_squared": 0.1, "times": [0.1], "paths": 8})"},
      {"entropy",
       R"({"network": "shaped_attention", "gamma_squared": 0.1, "width": 8, "depth": 4, "samples": 4})"},
      {"explosion", R"({"model": "attention", "gamma_squared": 0.1, "times": [0.1], "paths": 8})"},
      {"law", R"({"model": "attention", "gamma_squared": 0.1, "times": [0.5]})"},
      {"flow", R"({"flow": "commuting", "times": [0.1, 0.2]})"},
      {"coefficients", R"({"model": "mlp"})"},
      {"gradients", R"({"width": 8, "depth": 3, "samples": 2, "networks": [{"network": "mlp"}]})"}};
  CHECK(small.size() == experiments().experiments.size());
  for (const auto& [name, config] : small) {
    CAPTURE(name);
    const results::Experiment& row = experiments().experiment(name);
    const results::Results results = run(name, config);
    for (const std::string& file : row.files) {
      CAPTURE(file);
      if (file.ends_with(".csv"))
        CHECK(results.tables.at(file.substr(0, file.size() - 4)).rows() > 0);
      else
        CHECK_FALSE(results.summary.empty());
    }
    REQUIRE(results.pictures.size() == row.pictures.size());
    const auto first = results.pictures.empty() ? std::nullopt : results.pictures.front()();
    CHECK(first.has_value() == !row.pictures.empty());
    if (first) CHECK(gnuplot_script(*first).find("plot ") != std::string::npos);
  }
}

TEST_CASE("experiments: what is told meanwhile, and the seed of what is drawn") {
  std::vector<std::string> said, parts;
  results::Control control;
  control.say = [&](const std::string& text) { said.push_back(text); };
  control.progress_of = [&](const std::string& part) -> results::Control::Progress {
    parts.push_back(part);
    return {};
  };
  const char* config =
      R"({"network": "shaped_attention", "gammas": [0.1, 0.2], "width": 8, "depth": 4, "samples": 4, "seed": 7})";
  const results::Results results = run("stopping-time", config, control);
  CHECK(said.size() == 2);
  CHECK(said[0].starts_with("gamma 0.1"));
  CHECK(parts == std::vector<std::string>{"networks", "networks"});
  CHECK(results.origin.seed == 7);
  CHECK(results.summary["stopping_times"].size() == 2);
  CHECK_FALSE(run("flow", R"({"flow": "commuting", "times": [0.1]})").origin.seed.has_value());
}

TEST_CASE("experiments: outputs are of a model or of a network") {
  CHECK(testing::error_message<NetworkError>([] { return run("output", R"({"gamma": 0.5})").notes; }) ==
        "config.network: expected this field, or model, got none");
}
