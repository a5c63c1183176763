#include "widelimit/results/results.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "widelimit/version.hpp"

using namespace widelimit::results;
using nlohmann::json;

TEST_CASE("results: what is no number gets a note, and what has one keeps it") {
  Results results;
  results.table = Table({"a", "b", "c"}, {{1, std::nan(""), std::nan("")}, {2, -std::nan(""), 3}});
  results.summary = {{"x", HUGE_VAL}, {"y", {{"value", 1.0}, {"standard_error", std::nan("")}}}, {"z", 2.0}};
  results.notes["c"] = "explained";
  CHECK(note_missing(results) == std::vector<std::string>{"b: no finite number came out in 2 of 2 places",
                                                          "x: no finite number came out",
                                                          "y: no finite number came out in 1 of 2 places"});
  CHECK(results.summary["notes"] == json{{"b", "no finite number came out in 2 of 2 places"},
                                         {"c", "explained"},
                                         {"x", "no finite number came out"},
                                         {"y", "no finite number came out in 1 of 2 places"}});
  CHECK(csv_text(results.table) == "a,b,c\n1,nan,nan\n2,nan,3\n");
}

TEST_CASE("results: nothing is noted where every number is there, or of columns that no file has") {
  Results results;
  Table table({not_in_files({.name = "hidden"}), {.name = "label"}, {.name = "x"}});
  table.add(std::nan(""), "text", 1.0);
  results.table = table;
  CHECK(note_missing(results).empty());
  CHECK_FALSE(results.summary.contains("notes"));
}

TEST_CASE("results: an origin is an object in JSON and lines in CSV") {
  const Origin origin{"heads flow", {{"tau", 1}}, 4};
  const std::string version = widelimit::version;
  CHECK(
      json(origin_json(origin)) ==
      json{{"widelimit", version}, {"command", "heads flow"}, {"configuration", {{"tau", 1}}}, {"seed", 4}});
  CHECK(origin_comment(origin) ==
        "# widelimit " + version + ", heads flow\n# configuration: {\"tau\":1}\n# seed: 4\n");
  CHECK_FALSE(origin_json({"heads hessian", {}}).contains("seed"));
  CHECK(estimate_json({1.5, 0.25}) == json{{"value", 1.5}, {"standard_error", 0.25}});
}
