#include "widelimit/specialization/check.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::specialization;
using namespace widelimit::specialization::testing;
using nlohmann::json;

namespace {

json small_file() {
  return json::parse(R"({"subject": "head-specialization",
    "cases": [{"id": "token", "function": "token_loss", "rel_tol": 1e-8, "abs_tol": 1e-9,
               "inputs": {"activation": "softmax1", "chi": [[1, 0, -1], [0.5, 0.5, 0]], "b": [0.2, -0.3], "v": 1.3,
                          "eps": 0},
               "expected": {"loss": 0.349114365, "grad_v": -0.161970, "grad_b": [0.0471194, 0.000853569]}}],
    "stochastic": [{"id": "rate", "function": "split_rate", "samples": 100000,
                    "inputs": {"activation": "bayes", "L": 4, "H": 2, "nu1": 2.0, "nu2": 2.0},
                    "expected": {"rate": 0.2397066}, "standard_error": {"rate": 0.000167423}}]})");
}

}  // namespace

TEST_CASE("check: a row a field, within tolerances") {
  json file = small_file();
  file["cases"][0]["rel_tol"] = 1e-5;
  file["cases"][0]["abs_tol"] = 1e-6;
  const check::CheckReport report = check_reference(file);
  REQUIRE(report.rows.size() == 4);
  CHECK(report.rows[0].name == "token/grad_b");
  CHECK(report.rows[3].name == "rate/rate");
  CHECK(report.passed());
}

TEST_CASE("check: a wrong value, a wrong length, an unknown function and a bad input fail their row only") {
  json file = small_file();
  file["cases"][0]["expected"] = {{"loss", 0.3492}};
  const check::CheckReport wrong = check_reference(file);
  CHECK_FALSE(wrong.passed());
  CHECK_FALSE(wrong.rows[0].passed);
  CHECK(wrong.rows[0].error == doctest::Approx(0.3492 - 0.349114365).scale(0).epsilon(1e-4));
  CHECK(wrong.rows[1].passed);

  file["cases"][0]["expected"] = {{"grad_b", {1, 2, 3}}};
  CHECK(check_reference(file).rows[0].name == "token/grad_b: the file holds 3 numbers, computed 2");
  file["cases"][0]["expected"] = {{"shape", 1}};
  CHECK(check_reference(file).rows[0].name == "token/shape: shape: no field of this name is computed");
  file["cases"][0]["function"] = "levitate";
  CHECK(check_reference(file).rows[0].name == "token: unknown function \"levitate\"");
  file["cases"][0]["function"] = "token_loss";
  file["cases"][0]["inputs"]["activation"] = "relu";
  CHECK(check_reference(file).rows[0].name.find("got \"relu\"") != std::string::npos);
}

TEST_CASE("check: stochastic values are tested against four combined standard errors") {
  json file = small_file();
  file["stochastic"][0]["expected"]["rate"] = 0.2397066 + 0.01;
  CHECK_FALSE(check_reference(file).rows.back().passed);
}

TEST_CASE("check: a standard error that is missing fails the row") {
  json file = small_file();
  file["stochastic"][0]["standard_error"]["rate"] = json::array();
  CHECK(check_reference(file).rows.back().name == "rate/rate: expected a standard error of every number");
}

namespace {

/// The shared reference file, or nothing with an explanation.
json shared_file() {
  const std::filesystem::path path = WIDELIMIT_SOURCE_DIR "/../shared/reference/head-specialization.json";
  if (std::filesystem::exists(path)) return json::parse(std::ifstream(path));
  MESSAGE("skipped: the shared reference file is missing");
  return {};
}

void check_rows(const json& file) {
  const check::CheckReport report = check_reference(file);
  for (const check::CheckRow& row : report.rows) {
    INFO(row.name << ": expected " << row.expected << ", computed " << row.computed << ", tolerance "
                  << row.tolerance);
    CHECK(row.passed);
  }
  CHECK(report.passed());
}

}  // namespace

TEST_CASE("check: every deterministic case of the shared file but the widest grids") {
  json file = shared_file();
  if (file.is_null()) return;
  file.erase("stochastic");
  json quick = json::array();
  for (const json& description : file["cases"]) {
    const std::string id = description["id"];
    // Ten million nodes each.
    const bool wide = id.find("flip2-L2") != std::string::npos || id.find("gauss2-L2") != std::string::npos ||
                      id.find("spikes2-L2") != std::string::npos || id.find("population") == 0;
    if (!wide) quick.push_back(description);
  }
  REQUIRE(quick.size() > 120);
  file["cases"] = quick;
  check_rows(file);
}

TEST_CASE("check: the whole shared file [slow]") {
  const json file = shared_file();
  if (!file.is_null()) check_rows(file);
}
