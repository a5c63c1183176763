#include "widelimit/specialization/experiments.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "data/temporary_folder.hpp"
#include "specialization/experiments/shared.hpp"
#include "specialization/support.hpp"
#include "specialization/written_results.hpp"
#include "support/seconds_to_stop.hpp"
#include "widelimit/error.hpp"
#include "widelimit/specialization/hessian.hpp"

using namespace widelimit;
using namespace widelimit::specialization::testing;
using nlohmann::json;

namespace {

json experiment_config() {
  return json::parse(
      R"({"activation": "softmax1", "prior": {"kind": "flip2", "nu1": 2, "nu2": 2}, "tokens": 4, "heads": 3,
                         "tau": 2, "samples": 500, "fresh_samples": 500, "records": 5})");
}

std::string error_of(const std::string& name, const json& config) {
  return message_of([&] { (void)run_experiment(name, config); });
}

}  // namespace

TEST_CASE("experiment: a flow's table has a row a record and a column an entry") {
  const WrittenResults table = run_experiment("flow", experiment_config());
  CHECK(table.columns.size() == 2 + 6 + 9 + 3 + 1);
  CHECK(table.columns[2] == "m00");
  REQUIRE(table.rows.size() == 6);
  for (const auto& row : table.rows) CHECK(row.size() == table.columns.size());
  CHECK(table.rows.back()[0] == doctest::Approx(2));
  CHECK(table.rows.back()[1] < table.rows.front()[1]);
  CHECK(table.summary["loss"].get<double>() > 0.3);
  CHECK(table.summary["specialisation_time"].is_null());
  CHECK(run_experiment("flow", experiment_config()).rows == table.rows);
  json other = experiment_config();
  other["seed"] = 2;
  CHECK(run_experiment("flow", other).rows != table.rows);
}

TEST_CASE("experiment: without a time, flows run until their gradient is small, and say so") {
  json config = experiment_config();
  config.erase("tau");
  config["activation"] = "bayes";
  config["heads"] = 2;
  config["step"] = 0.5;
  const WrittenResults rested = run_experiment("flow", config);
  CHECK(rested.summary["converged"].get<bool>());
  CHECK(rested.summary["largest_gradient"].get<double>() < 1e-4);
  CHECK(rested.summary["tau"].get<double>() < 20'000);
  CHECK(rested.rows.back()[0] == rested.summary["tau"].get<double>());
  config["tau"] = 5;
  const WrittenResults cut = run_experiment("flow", config);
  CHECK_FALSE(cut.summary["converged"].get<bool>());
  CHECK(cut.summary["tau"].get<double>() == doctest::Approx(5));
  CHECK(cut.summary["loss"].get<double>() > rested.summary["loss"].get<double>());
}

TEST_CASE("experiment: several starts are told apart, and summed up by median and range") {
  json config = experiment_config();
  config["starts"] = 3;
  const WrittenResults table = run_experiment("flow", config);
  CHECK(table.columns[0] == "start");
  CHECK(table.columns[1] == "tau");
  REQUIRE(table.rows.size() == 18);
  for (std::size_t i = 0; i < 18; ++i) CHECK(table.rows[i][0] == static_cast<double>(i / 6));
  std::vector<double> losses;
  for (const json& start : table.summary["starts"]) losses.push_back(start["loss"].get<double>());
  REQUIRE(losses.size() == 3);
  std::sort(losses.begin(), losses.end());
  CHECK(table.summary["loss"] == losses[1]);
  CHECK(table.summary["losses"]["median"] == losses[1]);
  CHECK(table.summary["losses"]["least"] == losses[0]);
  CHECK(table.summary["losses"]["greatest"] == losses[2]);
  // The second start alone is the one of the next seed; only the fresh samples are others.
  json second = experiment_config();
  second["seed"] = 2;
  const WrittenResults alone = run_experiment("flow", second);
  for (std::size_t i = 0; i < 6; ++i)
    CHECK(std::equal(alone.rows[i].begin(), alone.rows[i].end(), table.rows[6 + i].begin() + 1));
  const WrittenResults pruned = run_experiment("prune", config);
  CHECK(pruned.rows.size() == 9);
  CHECK(pruned.summary["pruned"].size() == 3);
  CHECK(pruned.summary["pruned"][0]["median"] == losses[1]);
}

TEST_CASE("experiment: a given start is taken, by S or by r") {
  json config = experiment_config();
  config["start"] = {{"m", {{1, 0}, {0, 1}, {0.5, 0.5}}}, {"S", {{4, 0, 0}, {0, 1, 0}, {0, 0, 9}}}};
  const WrittenResults by_S = run_experiment("flow", config);
  CHECK(by_S.rows[0][2] == 1);
  CHECK(by_S.rows[0][8] == doctest::Approx(4));
  config["start"] = {{"m", {{1, 0}, {0, 1}, {0.5, 0.5}}}, {"r", {{2, 0, 0}, {0, 1, 0}, {0, 0, 3}}}};
  CHECK(run_experiment("flow", config).rows.back()[1] ==
        doctest::Approx(by_S.rows.back()[1]).scale(0).epsilon(1e-12));
}

TEST_CASE("experiment: every other experiment runs on small sizes") {
  json config = experiment_config();
  config["starts"] = 1;
  const WrittenResults pruned = run_experiment("prune", config);
  CHECK(pruned.rows.size() == 3);
  CHECK(std::isnan(pruned.rows[0][2]));

  const json finite =
      json::parse(R"({"activation": "bayes", "prior": {"kind": "flip2", "nu1": 2, "nu2": 2}, "tokens": 4,
                                      "heads": 2, "tau": 2, "dimension": 400, "records": 10,
                                      "planted_m": [[0.1, 0.25], [-0.05, -0.2]]})");
  const WrittenResults trained = run_experiment("sgd", finite);
  CHECK(trained.rows.size() == 11);
  CHECK(trained.rows[0][2] == doctest::Approx(0.1));
  json beside = finite;
  beside["samples"] = 20'000;
  // SGD's own noise at D = 400 is of size 1 / sqrt(D).
  CHECK(run_experiment("compare", beside).summary["largest_difference_m"].get<double>() <
        4 / std::sqrt(400.0));
  json vector_form = finite;
  vector_form["form"] = "vector";
  vector_form["dimension"] = 60;
  CHECK(run_experiment("sgd", vector_form).rows.size() == 11);

  const json hessian =
      json::parse(R"({"activation": "bayes", "prior": {"kind": "gaussian", "variances": [3, 1]},
                                       "tokens": 5, "heads": 2})");
  const WrittenResults rates = run_experiment("hessian", hessian);
  CHECK(rates.rows[1][0] == doctest::Approx(3));
  CHECK(rates.rows[1][1] == doctest::Approx(2 * 4.0 / 50 * 3));
  CHECK_FALSE(rates.summary.contains("saddle_split_rate"));

  const json risk =
      json::parse(R"({"prior": {"kind": "flip2", "nu1": 0, "nu2": 0}, "tokens": 5, "samples": 1000})");
  CHECK(run_experiment("bayes", risk).rows[0][0] == doctest::Approx(0.8));
}

TEST_CASE("experiment: the slope of specialisation times is the inverse rate at the saddle") {
  const json config =
      json::parse(R"({"activation": "bayes", "prior": {"kind": "flip2", "nu1": 2, "nu2": 2}, "tokens": 5,
                                      "heads": 2, "dimension": 10000, "etas": [1e-2, 1e-4], "starts": 1, "tau": 70,
                                      "step": 0.2, "samples": 16000})");
  const WrittenResults table = run_experiment("phase-transition", config);
  REQUIRE(table.rows.size() == 2);
  CHECK_FALSE(std::isnan(table.rows[1][3]));
  // The rate of 16000 samples and the grid of 0.2 in two times leave about 5 %.
  CHECK(table.summary["slope"].get<double>() ==
        doctest::Approx(table.summary["inverse_rate"].get<double>()).scale(0).epsilon(0.1));
  CHECK(table.summary["inverse_rate"].get<double>() == doctest::Approx(1 / 0.2505).scale(0).epsilon(0.005));
}

TEST_CASE("experiment: specialisation times of several activations and starts, with their spread") {
  const json config =
      json::parse(R"({"activations": ["bayes", "softmax1"], "prior": {"kind": "flip2", "nu1": 2, "nu2": 2},
                      "tokens": 5, "heads": 2, "dimension": 1000, "etas": [0.3, 0.03], "starts": 3, "tau": 30,
                      "step": 0.5, "samples": 2000})");
  const WrittenResults table = run_experiment("phase-transition", config);
  CHECK(table.columns == std::vector<std::string>{"eta", "start", "log_scale", "specialisation_time_bayes",
                                                  "ratio_bayes", "specialisation_time_softmax1",
                                                  "ratio_softmax1"});
  REQUIRE(table.rows.size() == 6);
  const json bayes = table.summary["bayes"];
  REQUIRE(bayes["times"].size() == 2);
  std::vector<double> times;
  for (std::size_t i = 0; i < 3; ++i) times.push_back(table.rows[i][3]);
  std::sort(times.begin(), times.end());
  CHECK(bayes["times"][0]["median"] == times[1]);
  CHECK(bayes["times"][0]["least"] == times[0]);
  CHECK(bayes["times"][0]["greatest"] == times[2]);
  CHECK(bayes["times"][0]["values"].size() == 3);
  CHECK(bayes["times"][1]["median"].get<double>() > times[1]);
  CHECK(bayes["inverse_rate"].get<double>() > 0);
  // The start of a seed is that of one activation alone.
  json single = config;
  single.erase("activations");
  single["activation"] = "softmax1";
  const WrittenResults alone = run_experiment("phase-transition", single);
  CHECK(alone.columns[3] == "specialisation_time");
  for (std::size_t i = 0; i < 6; ++i)
    CHECK((alone.rows[i][3] == table.rows[i][5] ||
           (std::isnan(alone.rows[i][3]) && std::isnan(table.rows[i][5]))));
  single["activations"] = {"bayes"};
  CHECK(error_of("phase-transition", single) == "config.activation: give either activation or activations");
}

TEST_CASE("experiment: stronger features specialise earlier") {
  const json config =
      json::parse(R"({"activation": "bayes", "prior": {"kind": "gaussian", "variances": [8, 1]}, "tokens": 4,
                      "heads": 4, "dimension": 1000, "etas": [0.1], "starts": 2, "tau": 40, "step": 0.4,
                      "samples": 2000, "delta": 0.5})");
  const WrittenResults table = run_experiment("feature-times", config);
  CHECK(table.columns.size() == 3 + 4);
  REQUIRE(table.rows.size() == 2);
  for (const auto& row : table.rows) {
    REQUIRE_FALSE(std::isnan(row[3]));
    CHECK((std::isnan(row[5]) || row[5] > row[3]));
    CHECK(row[4] == doctest::Approx(row[3] / row[2]));
  }
  CHECK(table.summary["features"].size() == 2);
  CHECK(table.summary["features"][0]["times"][0]["values"].size() == 2);
}

TEST_CASE("experiment: SGD and its comparison take several starts") {
  json config =
      json::parse(R"({"activation": "bayes", "prior": {"kind": "flip2", "nu1": 2, "nu2": 2}, "tokens": 4,
                      "heads": 2, "tau": 0.4, "dimension": 400, "records": 2, "starts": 3})");
  const WrittenResults trained = run_experiment("sgd", config);
  CHECK(trained.columns[0] == "start");
  CHECK(trained.rows.size() == 9);
  CHECK(trained.summary["starts"].size() == 3);
  CHECK(trained.summary["m"] == trained.summary["starts"][0]["m"]);
  json second = config;
  second["starts"] = 1;
  second["seed"] = 2;
  const WrittenResults alone = run_experiment("sgd", second);
  CHECK(alone.columns[0] == "tau");
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(std::equal(alone.rows[i].begin(), alone.rows[i].end(), trained.rows[3 + i].begin() + 1));
  config["samples"] = 2000;
  const WrittenResults beside = run_experiment("compare", config);
  CHECK(beside.rows.size() == 9);
  const json spread = beside.summary["spread"]["largest_difference_m"];
  CHECK(spread["least"].get<double>() < spread["median"].get<double>());
  CHECK(beside.summary["spread"]["values"] == 3);
}

TEST_CASE("experiment: a start that did not specialise is later than those that did") {
  const json none{{"time", nullptr}}, early{{"time", 3.0}}, late{{"time", 5.0}};
  const json some = widelimit::specialization::starts_spread({early, none, late}, "time");
  CHECK(some["time"] == json{{"median", 5.0}, {"least", 3.0}, {"greatest", nullptr}});
  CHECK(some["values"] == 2);
  CHECK(widelimit::specialization::starts_spread({none, early}, "time")["time"]["median"].is_null());
  CHECK(widelimit::specialization::starts_spread({early, late}, "time")["time"] ==
        json{{"median", 4.0}, {"least", 3.0}, {"greatest", 5.0}});
  CHECK(widelimit::specialization::starts_spread({none}, "time")["time"].is_null());
}

TEST_CASE("experiment: rejections name the field") {
  const auto changed = [](const char* field, const json& value) {
    json config = experiment_config();
    config[field] = value;
    return config;
  };
  CHECK(error_of("fly", {}) ==
        "experiment: expected flow, sgd, compare, bayes, hessian, prune, attention, phase-transition, "
        "feature-times, "
        "digits, digit-times, resampling, got \"fly\"");
  CHECK(error_of("flow", json::array()) == "config: expected a JSON object, got array");
  CHECK(error_of("flow", changed("activation", "gelu")) ==
        "config.activation: expected one of softmax, softmaxv, softmax1, bayes, got \"gelu\"");
  CHECK(error_of("flow", changed("variant", "best")) ==
        "config.variant: expected one of frame, symmetric, got \"best\"");
  CHECK(error_of("flow", changed("tau", -1)) == "config.tau: expected a number >= 0, got -1");
  CHECK(error_of("flow", changed("starts", 0)) ==
        "config.starts: expected an integer from 1 to 100000, got 0");
  CHECK(error_of("flow", changed("step", 0)) == "config.step: expected a number > 0, got 0");
  CHECK(error_of("flow", changed("heads", 2.5)) ==
        "config.heads: expected an integer from 1 to 1000, got 2.5");
  CHECK(error_of("flow", changed("head", 2)).find("config.head: unknown field; known are prior, tokens") ==
        0);
  CHECK(error_of("flow", changed("start", {{"m", {{1, 0}}}, {"r", {{1}}}})) ==
        "config.start.m: expected 3 x 2 numbers, got 1 x 2");
  const json heads3 = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, m = {{1, 0}, {0, 1}, {1, 1}};
  CHECK(error_of("flow", changed("start", {{"m", m}})) == "config.start: give either S or r");
  CHECK(error_of("flow", changed("start", {{"m", m}, {"S", heads3}, {"r", heads3}})) ==
        "config.start: give either S or r");
  CHECK(error_of("flow", changed("start", {{"m", m}, {"S", {{1, 0}, {0, 1}}}})) ==
        "config.start.S: expected 3 x 3 numbers, got 2 x 2");
  CHECK(error_of("flow", changed("seed", -1)) == "config.seed: expected an integer >= 0, got -1");
  CHECK(error_of("bayes", {{"tokens", 3}}) == "config.prior: expected this field, got none");
  const auto transition = [](const json& etas) {
    json config = experiment_config();
    for (const char* field : {"fresh_samples", "records"}) config.erase(field);
    config["dimension"] = 100;
    config["etas"] = etas;
    return config;
  };
  CHECK(error_of("phase-transition", transition(json::array())) ==
        "config.etas: expected a list of different numbers in [1e-30, 1e+06], at least one, got []");
  CHECK(error_of("phase-transition", transition({0.1, -1})) ==
        "config.etas: expected a list of different numbers in [1e-30, 1e+06], at least one, got [0.1,-1]");
}

TEST_CASE("experiment: stops when it is asked to") {
  json config = experiment_config();
  for (const char* field : {"samples", "fresh_samples", "records"}) config.erase(field);
  config["tau"] = 1e6;
  config["dimension"] = 100;
  config["etas"] = {0.1};
  CHECK(widelimit::testing::seconds_to_stop([&](const std::stop_token& stop) {
          return run_experiment("phase-transition", config, {.stop = stop});
        }) < 1);
}

TEST_CASE("experiment: what a single head does not have is said") {
  json config = experiment_config();
  config["heads"] = 1;
  WrittenResults table = run_experiment("flow", config);
  note_missing(table);
  CHECK(table.summary["specialisation_time"].is_null());
  CHECK(table.summary["notes"]["specialisation_time"] ==
        "a single head has no other to differ from, and specialises at no time");
  config["step"] = 50;
  config["tau"] = 500;
  config["heads"] = 4;
  CHECK(error_of("flow", config).find("the largest that is stable there is about") != std::string::npos);
}

TEST_CASE("heads scan: a grid is its points one by one, and goes on where it stopped") {
  json config = experiment_config();
  config.erase("heads");
  config["prior"].erase("nu2");
  config["scan"] = {{"heads", {1, 2}}, {"prior.nu2", {0.5, 2}}};
  const auto single = [&](int heads, double nu2) {
    json point = config;
    point.erase("scan");
    point["heads"] = heads;
    point["prior"]["nu2"] = nu2;
    return run_experiment("flow", point).summary;
  };
  const WrittenResults table = run_scan("flow", config, {});
  REQUIRE(table.rows.size() == 4);
  CHECK(table.columns == std::vector<std::string>{"heads", "prior.nu2", "loss", "loss_standard_error",
                                                  "least_loss", "greatest_loss", "converged",
                                                  "specialisation_time", "tau", "split_rate"});
  CHECK(table.rows[2][0] == 2);
  CHECK(table.rows[2][1] == 0.5);
  CHECK(table.rows[0][2] == single(1, 0.5).at("loss").get<double>());
  CHECK(table.rows[3][2] == single(2, 2).at("loss").get<double>());
  CHECK(table.summary.at("points")[3].at("scan") == json{{"heads", 2}, {"prior.nu2", 2}});
  CHECK(table.summary.at("points")[3].at("loss") == single(2, 2).at("loss"));
  CHECK(scan_script("flow", table).find("prior.nu2 0.5") != std::string::npos);
  const TemporaryFolder folder;
  const std::filesystem::path kept = folder.path() / "points";
  std::stop_source source;
  RunControl run;
  run.stop = source.get_token();
  run.progress = [&](std::ptrdiff_t done, std::ptrdiff_t all) {
    CHECK(all == 4);
    if (done == 2) source.request_stop();
  };
  CHECK_THROWS_AS((void)run_scan("flow", config, run, kept), Cancelled);
  REQUIRE(std::filesystem::exists(kept));
  // What is kept is not computed again: another loss in the file comes out. Of the line that a stop cut off nothing is
  // read, and the next point does not follow it.
  std::istringstream lines(read_bytes(kept));
  std::vector<json> kept_lines;
  for (std::string line; std::getline(lines, line);) kept_lines.push_back(json::parse(line));
  REQUIRE(kept_lines.size() == 3);
  kept_lines[2]["summary"]["loss"] = 7;
  const std::string before = kept_lines[0].dump() + "\n" + kept_lines[1].dump() + "\n",
                    points = before + kept_lines[2].dump() + "\n";
  std::ofstream(kept) << points << R"({"columns":["lo)";
  source = {};
  run.stop = source.get_token();
  run.progress = [&](std::ptrdiff_t done, std::ptrdiff_t) {
    if (done == 3) source.request_stop();
  };
  CHECK_THROWS_AS((void)run_scan("flow", config, run, kept), Cancelled);
  const std::string appended = read_bytes(kept);
  CHECK(appended.starts_with(points + "{"));
  CHECK(std::count(appended.begin(), appended.end(), '\n') == 4);
  const WrittenResults resumed = run_scan("flow", config, {}, kept);
  CHECK(csv_rows({.columns = resumed.columns, .rows = {resumed.rows[0]}}) ==
        csv_rows({.columns = table.columns, .rows = {table.rows[0]}}));
  CHECK(resumed.rows[1][2] == 7);
  CHECK(csv_rows({.columns = resumed.columns, .rows = {resumed.rows[3]}}) ==
        csv_rows({.columns = table.columns, .rows = {table.rows[3]}}));
  CHECK_FALSE(std::filesystem::exists(kept));
  std::ofstream(kept) << points;
  json other = config;
  other["seed"] = 12;
  CHECK(message_of([&] {
          (void)run_scan("flow", other, {}, kept);
        }).ends_with("holds points of another configuration or version; remove it, or give another --out"));
  for (const json& damaged : {json("points"), json(3), json::object(), json{{"summary", json::object()}},
                              json{{"summary", json::object()},
                                   {"columns", json::array({"loss"})},
                                   {"rows", json::array()},
                                   {"notes", json::object()}}}) {
    std::ofstream(kept) << before + damaged.dump() + "\n";
    CHECK(message_of([&] { (void)run_scan("flow", config, {}, kept); }) ==
          kept.string() + ": is damaged; remove it, and all points are computed again");
  }
  std::ofstream(kept) << before + "{\n";
  CHECK(message_of([&] { (void)run_scan("flow", config, {}, kept); }).starts_with(kept.string() + ":"));
}

TEST_CASE("heads scan: names of fields are drawn letter by letter") {
  json risk = {{"prior", {{"kind", "spikes"}, {"features", 2}, {"nu", 4}}}, {"tokens", 3}, {"samples", 2000}};
  risk["scan"] = {{"tokens", {2, 3}}, {"seed", {1, 2}}};
  risk.erase("tokens");
  WrittenResults table = run_scan("bayes", risk, {});
  // gnuplot would draw the first letter behind an underscore below the line.
  table.columns[0] = "stop_gradient";
  table.columns[1] = "risk_samples";
  const std::string script = scan_script("bayes", table);
  CHECK(script.starts_with("set terminal pngcairo size 1000,650 noenhanced"));
  CHECK(script.find(R"(set xlabel "stop_gradient")") != std::string::npos);
  CHECK(script.find(R"(title "risk_samples 2")") != std::string::npos);
}

TEST_CASE("heads scan: tables of points follow each other, and mistakes are named") {
  json risk = {{"prior", {{"kind", "spikes"}, {"features", 2}}},
               {"tokens", 3},
               {"samples", 2000},
               {"scan", {{"prior.nu", {1, 4, 9}}}}};
  const WrittenResults risks = run_scan("bayes", risk, {});
  CHECK(risks.columns == std::vector<std::string>{"prior.nu", "bayes_risk", "standard_error"});
  REQUIRE(risks.rows.size() == 3);
  CHECK(risks.rows[0][1] > risks.rows[2][1]);
  json pruned = experiment_config();
  pruned.erase("tokens");
  pruned["starts"] = 2;
  pruned["scan"] = {{"tokens", {3, 5}}};
  const WrittenResults heads = run_scan("prune", pruned, {});
  CHECK(heads.columns == std::vector<std::string>{"tokens", "start", "removed", "loss", "head"});
  CHECK(heads.rows.size() == 2 * run_experiment("prune",
                                                [&] {
                                                  json point = pruned;
                                                  point.erase("scan");
                                                  point["tokens"] = 3;
                                                  return point;
                                                }())
                                     .rows.size());
  CHECK(scan_script("prune", heads).find("tokens 5") != std::string::npos);
  // Where nothing specialises there is nothing to draw, which gnuplot would refuse.
  WrittenResults never = heads;
  never.columns = {"tokens", "eta", "start", "log_scale", "specialisation_time"};
  never.rows = {{3, 1, 0, 1, std::nan("")}, {5, 1, 0, 1, std::nan("")}};
  CHECK(scan_script("phase-transition", never).find("no value at any point") != std::string::npos);
  const auto failure = [&](const json& scan) {
    json config = risk;
    config["scan"] = scan;
    return message_of([&] { (void)run_scan("bayes", config, {}); });
  };
  CHECK(failure({{"prior.nu", 3}}) == "config.scan: prior.nu: expected a list of at least one number, got 3");
  CHECK(failure({{"prior.nu", {1, 1}}}) == "config.scan: prior.nu: expected different numbers, got [1,1]");
  CHECK(failure({{"tokens", {1, 2}}}) ==
        "config.scan: tokens: is scanned and given too; leave one of them out");
  for (const std::string path : {"start.m", "prior/nu", "~prior", "prior.nu.x"})
    CHECK(failure({{path, {1, 2}}}) == "config.scan: " + path +
                                           ": expected a field of the configuration, or of an object in it, "
                                           "such as prior.nu");
  CHECK(failure({{"samples", json::array({5})}}) ==
        "config.scan: samples: is scanned and given too; leave one of them out");
  CHECK(failure(json::array()) ==
        "config.scan: expected an object of lists of numbers, such as {\"heads\": [1, 2, 4]}, got []");
  CHECK(failure({{"seed", {1, -3}}, {"prior.nu", json::array({2})}}) ==
        "prior.nu 2, seed -3: config.seed: expected an integer >= 0, got -3");
  CHECK(failure({{"wings", json::array({1})}, {"prior.nu", json::array({2})}}).find("wings") !=
        std::string::npos);
}
