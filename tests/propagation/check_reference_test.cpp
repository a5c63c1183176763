#include "widelimit/propagation/check_reference.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::propagation;

namespace {

std::optional<nlohmann::json> reference_file() {
  const std::filesystem::path path = WIDELIMIT_SOURCE_DIR "/../shared/reference/signal-propagation.json";
  if (!std::filesystem::exists(path)) {
    MESSAGE("skipped: the shared reference file signal-propagation.json is missing");
    return std::nullopt;
  }
  return nlohmann::json::parse(std::ifstream(path));
}

const nlohmann::json predictor_case = nlohmann::json::parse(R"({
  "subject": "signal-propagation",
  "cases": [{"id": "one", "function": "loss_predictor", "rel_tol": 1e-9, "abs_tol": 1e-12,
             "inputs": {"lambda_a": 0.1, "lambda_g": -0.2, "w_a": 3, "w_g": 2, "b": 2.5, "ceiling": 5},
             "expected": {"loss": 2.9}}]})");

}  // namespace

TEST_CASE("check: the reference file is reproduced") {
  const auto reference = reference_file();
  if (!reference) return;
  const check::CheckReport report = check_reference(*reference);
  CHECK(report.rows.size() == 723);
  for (const check::CheckRow& row : report.rows) {
    CAPTURE(row.name);
    CAPTURE(row.expected);
    CAPTURE(row.computed);
    CAPTURE(row.tolerance);
    CHECK(row.passed);
  }
}

TEST_CASE("check: a wrong number, a wrong null and an unknown field fail") {
  auto reference = predictor_case;
  CHECK(check_reference(reference).passed());
  auto& expected = reference["cases"][0]["expected"];
  expected["loss"] = 2.9 * (1 + 1e-8);
  CHECK_FALSE(check_reference(reference).passed());
  expected["loss"] = nullptr;
  CHECK_FALSE(check_reference(reference).passed());
  expected = {{"loss", 2.9}, {"gain", 1}};
  const auto report = check_reference(reference);
  REQUIRE(report.rows.size() == 2);
  CHECK(report.rows[0].name == "one/gain: gain: no field of this name is computed");
  CHECK_FALSE(report.rows[0].passed);
  CHECK(report.rows[1].passed);
}

TEST_CASE("check: a case that cannot be computed says why") {
  const auto report = check_reference({{"subject", "signal-propagation"},
                                       {"cases",
                                        {{{"id", "gap"},
                                          {"function", "causal_kappa"},
                                          {"rel_tol", 0},
                                          {"abs_tol", 0},
                                          {"inputs", {{"n", 1}}},
                                          {"expected", {{"value", 1}}}}}}});
  REQUIRE(report.rows.size() == 1);
  CHECK_FALSE(report.rows[0].passed);
  CHECK(report.rows[0].name == "gap: causal_gap_share: tokens must be at least 2, got 1");
}

TEST_CASE("check: unknown functions are named") {
  auto reference = predictor_case;
  reference["cases"][0]["function"] = "magic";
  CHECK(check_reference(reference).rows[0].name == "one: unknown function \"magic\"");
}
