#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "cli/program.hpp"
#include "specialization/support.hpp"
#include "specialization/written_results.hpp"
#include "support/seconds_to_stop.hpp"

/// The experiments of figures 7 and 8: specialisation times of digits, and flows on kept and on fresh samples.

using nlohmann::json;
using widelimit::specialization::testing::message_of;
using widelimit::specialization::testing::run_experiment;
using widelimit::specialization::testing::WrittenResults;

namespace {

/// Bars in place of digits, loud enough that heads find them within seconds.
json bars() {
  return {{"activation", "bayes"}, {"images", 60}, {"amplitude", 1}, {"heads", 4},   {"tokens", 3},
          {"etas", {0.1}},         {"starts", 2},  {"tau", 40},      {"gamma", 0.5}, {"batch", 64}};
}

json flips() {
  return json::parse(R"({"activation": "softmax", "prior": {"kind": "flip2", "nu1": 2, "nu2": 2}, "tokens": 8,
                         "heads": 2, "tau": 8, "step": 0.2, "samples": 4000, "records": 4})");
}

}  // namespace

TEST_CASE("digit-times: every digit has a time, later for a larger bound, and the input is told") {
  json config = bars();
  config["delta"] = 0.3;
  const WrittenResults early = run_experiment("digit-times", config);
  REQUIRE(early.columns.size() == 3 + 2 * 10);
  CHECK(early.columns[3] == "digit_time_0");
  REQUIRE(early.rows.size() == 2);
  CHECK(early.rows[0][2] == doctest::Approx(std::log(28 / 0.1)));
  CHECK(early.summary["digits"].size() == 10);
  CHECK(early.summary["input"]["kind"].get<std::string>().starts_with("generated"));
  CHECK(early.summary["input"]["images"] == 60);
  config["delta"] = 1;
  const WrittenResults late = run_experiment("digit-times", config);
  int found = 0;
  for (std::size_t row = 0; row < 2; ++row)
    for (std::size_t column = 3; column < early.columns.size(); column += 2) {
      const double time = early.rows[row][column];
      if (std::isnan(time)) continue;
      ++found;
      CHECK(time > 0);
      // The same batches: a larger bound is passed no earlier.
      CHECK((std::isnan(late.rows[row][column]) || late.rows[row][column] >= time));
      CHECK(early.rows[row][column + 1] == doctest::Approx(time / early.rows[row][2]));
    }
  CHECK(found >= 4);
  const json& ends = early.summary["ends"];
  CHECK(ends["specialised"].get<int>() + ends["tau"].get<int>() == 2);
}

TEST_CASE("digit-times: runs end once all times are known, or at tau") {
  json config = bars();
  config["delta"] = 0;
  const WrittenResults at_once = run_experiment("digit-times", config);
  CHECK(at_once.summary["ends"]["specialised"] == 2);
  for (std::size_t column = 3; column < at_once.columns.size(); column += 2)
    CHECK(at_once.rows[0][column] == 0);
  config["delta"] = 1e6;
  config["tau"] = 1;
  const WrittenResults never = run_experiment("digit-times", config);
  CHECK(never.summary["ends"]["tau"] == 2);
  CHECK(std::isnan(never.rows[0][3]));
  CHECK(never.summary["digits"][0]["times"][0]["values"] == json({nullptr, nullptr}));
}

TEST_CASE("resampling: the kept flow is that of `flow`, the fresh one stays near it") {
  const WrittenResults pair = run_experiment("resampling", flips());
  json config = flips();
  config["stop_gradient"] = 0;
  config["fresh_samples"] = 10;
  const WrittenResults flow = run_experiment("flow", config);
  CHECK(pair.columns[3] == "m_kept_00");
  CHECK(pair.columns[7] == "m_fresh_00");
  REQUIRE(pair.rows.size() == flow.rows.size());
  for (std::size_t row = 0; row < flow.rows.size(); ++row)
    for (std::size_t entry = 0; entry < 4; ++entry)
      CHECK(pair.rows[row][3 + entry] == flow.rows[row][2 + entry]);
  // Both start alike; samples of their own part them by the size of a sampled gradient.
  for (std::size_t entry = 3; entry < 7; ++entry) CHECK(pair.rows[0][entry] == pair.rows[0][entry + 4]);
  const double difference = pair.summary["largest_difference_m"].get<double>();
  CHECK(difference > 0);
  CHECK(difference < 10 / std::sqrt(4000.0));
  CHECK_FALSE(pair.summary["converged"].get<bool>());
}

TEST_CASE("resampling: both flows end where the kept one rests, for every start") {
  json config = flips();
  config["stop_gradient"] = 10;
  config["starts"] = 2;
  const WrittenResults pair = run_experiment("resampling", config);
  CHECK(pair.rows.size() == 2);
  CHECK(pair.columns[0] == "start");
  CHECK(pair.summary["starts"].size() == 2);
  CHECK(pair.summary["converged"].get<bool>());
  CHECK(pair.summary["tau"] == 0);
  CHECK(pair.summary["spread"]["values"] == 2);
}

TEST_CASE("feature-times and phase-transition: a flow at rest is told from one that specialised") {
  json config =
      json::parse(R"({"activation": "softmax", "prior": {"kind": "flip2", "nu1": 2, "nu2": 2}, "tokens": 4,
                     "heads": 2, "dimension": 100, "etas": [0.1], "starts": 1, "tau": 400, "step": 0.5, "samples": 500})");
  CHECK(run_experiment("phase-transition", config).summary["ends"] ==
        json{{"specialised", 1}, {"rest", 0}, {"tau", 0}});
  config["stop_gradient"] = 10;
  for (const char* name : {"phase-transition", "feature-times"})
    CHECK(run_experiment(name, config).summary["ends"] == json{{"specialised", 0}, {"rest", 1}, {"tau", 0}});
  config["stop_gradient"] = 0;
  config["tau"] = 1;
  CHECK(run_experiment("feature-times", config).summary["ends"] ==
        json{{"specialised", 0}, {"rest", 0}, {"tau", 1}});
}

TEST_CASE("digit-times and resampling stop when they are asked to") {
  json digits = bars();
  digits["tau"] = 1e5;
  digits["delta"] = 1e6;
  json flows = flips();
  flows["samples"] = 200'000;
  flows["tau"] = 1e4;
  const auto seconds = [](const char* name, const json& config) {
    return widelimit::testing::seconds_to_stop(
        [&](const std::stop_token& stop) { return run_experiment(name, config, {.stop = stop}); });
  };
  CHECK(seconds("digit-times", digits) < 1);
  CHECK(seconds("resampling", flows) < 1);
}

TEST_CASE(
    "heads: a picture is drawn where no time was reached, and none can be drawn on a logarithmic axis") {
  const widelimit::testing::TemporaryFolder folder;
  const std::string file = (folder / "c.json").string(), picture = (folder / "p.png").string();
  const auto check = [&](const std::string& experiment, const json& config) {
    CAPTURE(experiment);
    std::ofstream(file) << config;
    const auto result =
        widelimit::testing::run_program("heads " + experiment + " " + file + " --plot " + picture);
    CHECK(result.code == 0);
    CHECK(result.errors.find("warning") == std::string::npos);
    REQUIRE(std::filesystem::exists(picture));
    CHECK(widelimit::testing::file_text(picture).substr(1, 3) == "PNG");
    std::filesystem::remove(picture);
  };
  json times = flips();
  times.erase("records");
  times.update({{"dimension", 30}, {"etas", {0.5, 2}}, {"tau", 1}, {"samples", 50}, {"delta", 100}});
  check("phase-transition", times);
  check("feature-times", times);
  json bar = bars();
  bar.update({{"delta", 1000}, {"tau", 1}});
  check("digit-times", bar);
  json flow = flips();
  flow.update({{"tau", 0}, {"fresh_samples", 50}});
  check("flow", flow);
}

TEST_CASE("attention: weights of the sequences, and masses that are their means") {
  const json config = json::parse(
      R"({"activation": "softmax", "prior": {"kind": "gaussian", "variances": [9, 9]}, "tokens": 4, "heads": 2,
          "tau": 20, "step": 0.5, "samples": 500, "fresh_samples": 300, "starts": 3, "sequences": 300})");
  const WrittenResults table = run_experiment("attention", config);
  REQUIRE(table.rows.size() == 300 * 2 * 4);
  double relevant = 0, other = 0;
  for (const auto& row : table.rows) {
    CHECK(row[3] >= 0);
    (row[2] == 0 ? relevant : other) += row[3] / 300;
  }
  // All fresh samples are in the table: their means are the masses of the median start.
  CHECK(table.summary["relevant_mass"].get<double>() == doctest::Approx(relevant).epsilon(1e-6));
  CHECK(table.summary["other_mass"].get<double>() == doctest::Approx(other).epsilon(1e-6));
  CHECK(relevant + other == doctest::Approx(1));
  CHECK(table.summary["starts"].size() == 3);
  json many = config;
  many["sequences"] = 301;
  CHECK(message_of([&] { (void)run_experiment("attention", many); }) ==
        "config.sequences: expected at most 300, fresh_samples, got 301");
}

TEST_CASE("digits: trained keys are like classes, and the loss lies above the Bayes risk") {
  json config = json::parse(
      R"({"activation": "bayes", "images": 100, "tau": 100, "batch": 100, "gamma": 0.5, "amplitude": 0.6, "heads": 4,
          "fresh_samples": 2000, "risk_samples": 2000})");
  const WrittenResults trained = run_experiment("digits", config);
  REQUIRE(trained.rows.size() == 4);
  CHECK(trained.columns.size() == 4 + 784);
  const double loss = trained.summary["loss"], risk = trained.summary["bayes_risk"];
  const double error = trained.summary["loss_standard_error"],
               risk_error = trained.summary["bayes_risk_standard_error"];
  CHECK(loss > risk - 4 * (error + risk_error));
  for (const auto& row : trained.rows) {
    double greatest = -1;
    for (const double cosine : trained.summary["cosines"][static_cast<std::size_t>(row[0])])
      greatest = std::max(greatest, cosine);
    CHECK(row[3] == greatest);
  }
  config["tau"] = 0;
  const WrittenResults start = run_experiment("digits", config);
  CHECK(start.summary["loss"].get<double>() > loss + 0.02);
  CHECK(trained.rows[0][3] > start.rows[0][3] + 0.1);
}

TEST_CASE("phase-transition: SGD over dimensions, with means and variances") {
  json config = json::parse(
      R"({"activation": "bayes", "prior": {"kind": "flip2", "nu1": 2, "nu2": 2}, "tokens": 3, "heads": 2,
          "dimensions": [50, 200], "etas": [0.1], "dynamics": "sgd", "tau": 100, "gamma": 0.1, "starts": 4})");
  const WrittenResults table = run_experiment("phase-transition", config);
  CHECK(table.columns[0] == "dimension");
  REQUIRE(table.rows.size() == 8);
  CHECK(table.rows[3][0] == 50);
  CHECK(table.rows[4][0] == 200);
  double mean = 0, variance = 0;
  for (std::size_t i = 0; i < 4; ++i) mean += table.rows[i][4] / 4;
  for (std::size_t i = 0; i < 4; ++i) variance += (table.rows[i][4] - mean) * (table.rows[i][4] - mean) / 3;
  const json& first = table.summary["times"][0];
  CHECK(first["mean"].get<double>() == doctest::Approx(mean));
  CHECK(first["variance"].get<double>() == doctest::Approx(variance));
  const auto fails = [&](const char* field, const json& value, const char* message) {
    json wrong = config;
    wrong[field] = value;
    CHECK(message_of([&] { (void)run_experiment("phase-transition", wrong); }) == message);
  };
  fails("step", 0.1, "config.step: has no effect with SGD: leave it out");
  fails("dimension", 70, "config.dimension: give either dimension or dimensions");
  fails("dimensions", json{50, 6}, "config.dimensions: expected an integer >= 7, got 6");
  fails("dynamics", "flow", "config.gamma: has no effect with flows: leave it out");
}

TEST_CASE("bayes: the optimal heads of a discrete prior") {
  const json config = json::parse(
      R"({"prior": {"kind": "spikes", "features": 2, "nu": 3}, "tokens": 3, "samples": 100, "heads": 3})");
  const json heads = run_experiment("bayes", config).summary["optimal_heads"];
  CHECK(heads["m"].size() == 3);
  CHECK(heads["m"][1][1].get<double>() == doctest::Approx(std::sqrt(3.0)));
  // The third head repeats the first point, whose probability they share.
  CHECK(heads["b"][0].get<double>() == doctest::Approx(std::log(0.25) - 1.5));
  CHECK(heads["b"][1].get<double>() == doctest::Approx(std::log(0.5) - 1.5));
}
