#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "program.hpp"

namespace widelimit::testing {
namespace {

/// The error of `widelimit check` after the file's name; a crash or a hang has another form.
std::string check_error(const std::string& text) {
  const TemporaryFolder folder;
  const auto file = folder / "reference.json";
  std::ofstream(file) << text;
  const ProgramResult result = run_program_under("timeout 10", "check " + file.string());
  CHECK(result.code == 1);
  const std::string name = "widelimit: " + file.string() + ": ";
  REQUIRE(result.errors.starts_with(name));
  return result.errors.substr(name.size());
}

std::string propagation_case(const std::string& expected) {
  return R"({"subject": "signal-propagation", "cases": [{"id": "a", "function": "loss_predictor", "rel_tol": 0,
             "abs_tol": 1, "inputs": {"w_a": 1, "w_g": 1, "b": 1, "ceiling": 3, "lambda_a": 1, "lambda_g": 1},
             "expected": )" +
         expected + "}]}";
}

TEST_CASE("check: numbers in strings are refused, not descended into for ever") {
  CHECK(check_error(propagation_case(R"({"loss": "0.39"})")) ==
        "reference file.cases[0].expected.loss: expected a number, got \"0.39\"\n");
  CHECK(check_error(propagation_case(R"({"loss": [1, {"a": 2}]})")) ==
        "reference file.cases[0].expected.loss[1]: expected a number, got {\"a\":2}\n");
}

TEST_CASE("check: numbers out of range, wrong subjects and broken files are refused by name and field") {
  CHECK(check_error(propagation_case(R"({"loss": 1e999})")) ==
        "cases[0].expected.loss: expected a number within the range of double, got 1e999\n");
  for (const char* text : {R"({"subject": 5})", "{}", "[]", "5", R"({"subject": "kernels"})"})
    CHECK(check_error(text).starts_with("expected an object whose \"subject\" is shaped-transformer, "));
  CHECK(check_error(R"({"subject": "signal-propagation", "cases": 5})") ==
        "reference file.cases: expected a list, got 5\n");
  CHECK(check_error(R"({"subject": "shaped-transformer"})") ==
        "reference file.coefficients: expected this field, got none\n");
  CHECK(check_error(R"({"subject": "shaped-transformer", "coefficients": [{"V": "x"}]})") ==
        "reference file.coefficients[0].V: expected a list of number lists of equal length, got \"x\"\n");
  CHECK(check_error(R"({"subject": "head-specialization"})") ==
        "reference file.cases: expected this field, got none\n");
  CHECK(check_error("{\"subject\"").starts_with("not JSON at line 1, "));
}

TEST_CASE("check: a case whose inputs are malformed is a failed row that says why") {
  const TemporaryFolder folder;
  std::ofstream(folder / "r.json") << R"({"subject": "signal-propagation", "cases": [{"id": "a",
    "function": "trajectory", "rel_tol": 0, "abs_tol": 1, "inputs": {"n": 4, "blocks": []}, "expected": {}}]})";
  const ProgramResult result = run_program("check " + (folder / "r.json").string());
  CHECK(result.code == 1);
  CHECK(result.output.find("cases[0].inputs.blocks: expected ascending numbers of blocks, got []") !=
        std::string::npos);
}

}  // namespace
}  // namespace widelimit::testing
