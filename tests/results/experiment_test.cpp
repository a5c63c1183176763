#include "widelimit/results/experiment.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/error_message.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::results;
using nlohmann::json;
using widelimit::testing::error_message;

namespace {

/// y = a x of two rows; "a" may be scanned.
Results lines(ConfigReader& fields, const Control& control) {
  Results results;
  results.table = Table({"x", "y"}, {{1, fields.number("a")}, {2, 2 * fields.number("a")}});
  results.summary["a"] = fields.number("a");
  if (control.progress) control.progress(1, 1);
  return results;
}

Picture nothing(const Results&) { return {.panels = {empty_panel({}, "nothing")}}; }

const Theory& theory() {
  static const ConfigFields fields{{"a", FieldValues::at_least(0), "1", "the slope"},
                                   {"scan", "lists", "none", "points"}};
  static const ConfigFields plain = without_fields(fields, {"scan"});
  static const Theory lines_theory{
      "lines",
      {{.name = "line",
        .sentence = "A line",
        .fields = &fields,
        .run = lines,
        .scan_picture = {"", "", "y", "height"}},
       {.name = "plain", .sentence = "A line", .fields = &plain, .run = lines, .picture = nothing}}};
  return lines_theory;
}

}  // namespace

TEST_CASE("experiment: a row runs by its name, and its results say what they come from") {
  const Results results = theory().run("line", {{"a", 3}});
  CHECK(results.table.values("y") == std::vector<double>{3, 6});
  CHECK(results.origin.command == "lines line");
  CHECK(results.origin.configuration == json{{"a", 3}});
  CHECK(theory().run("line", json::object()).summary["a"] == 1);
  CHECK(error_message<ArgumentError>([] { return theory().run("curve", json::object()).notes; }) ==
        "experiment: expected line, plain, got \"curve\"");
  CHECK(error_message<NetworkError>([] {
          return theory().run("line", {{"a", -1}}).notes;
        }) == "config.a: expected a number >= 0, got -1");
}

TEST_CASE("experiment: only those with a field for it are scanned") {
  CHECK(has_scans(theory().experiment("line")));
  CHECK_FALSE(has_scans(theory().experiment("plain")));
  CHECK(is_scan(theory().experiment("line"), {{"scan", {{"a", {1}}}}}));
  CHECK_FALSE(is_scan(theory().experiment("line"), {{"a", 1}}));
  CHECK_FALSE(is_scan(theory().experiment("line"), json::array()));
}

TEST_CASE("experiment: a scan has the rows of all points after their values, and tells points") {
  std::vector<std::ptrdiff_t> done;
  Control control;
  control.progress = [&](std::ptrdiff_t k, std::ptrdiff_t all) {
    CHECK(all == 2);
    done.push_back(k);
  };
  const Results results = run_scan(theory(), "line", {{"scan", {{"a", {2, 5}}}}}, control);
  CHECK(results.table.names() == std::vector<std::string>{"a", "x", "y"});
  CHECK(results.table.values("y") == std::vector<double>{2, 4, 5, 10});
  CHECK(results.summary["points"][1] == json{{"scan", {{"a", 5}}}, {"a", 5.0}});
  CHECK(done == std::vector<std::ptrdiff_t>{1, 2});
  const std::string script = gnuplot_script(scan_picture(theory(), "line", results));
  CHECK(script.find("\"lines line, a scan\"") != std::string::npos);
  // The median of the two rows of a point.
  CHECK(script.find("2 3\n5 7.5\n") != std::string::npos);
}

TEST_CASE("experiment: medians of what may be missing") {
  const double never = std::nan("");
  CHECK(censored_median({3, never, 1}) == 3);
  CHECK(std::isnan(censored_median({1, never})));
  CHECK(std::isnan(censored_median({})));
}
