#include "check/reference_file.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "support/error_message.hpp"
#include "widelimit/covariance_sde/check_reference.hpp"
#include "widelimit/error.hpp"
#include "widelimit/propagation/check_reference.hpp"
#include "widelimit/specialization/check.hpp"

using namespace widelimit;
using namespace widelimit::check;
using nlohmann::json;

namespace {

const json one_case = json::parse(R"({"subject": "sums", "cases": [
  {"id": "two", "function": "sum", "inputs": {"terms": [1, 2]}, "expected": {"sum": 3, "terms": [[1], [2]]},
   "rel_tol": 1e-9, "abs_tol": 0}]})");

CaseFields sums(const std::string& function, const JsonValue& inputs) {
  if (function != "sum") throw DataError("unknown function \"" + function + "\"");
  const Vector<double> terms = inputs.at("terms");
  return {{"sum", terms.sum()}, {"terms", terms}};
}

Rows rows_of(const json& document) {
  Rows rows;
  check_cases(reference_file(document, "sums"), sums, rows);
  return rows;
}

std::string error_of(const json& document) {
  return widelimit::testing::error_message<DataError>([&] { return rows_of(document); });
}

}  // namespace

TEST_CASE("reference file: a row a field, nested lists in row-major order") {
  const Rows rows = rows_of(one_case);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].name == "two/sum");
  CHECK(rows[1].name == "two/terms");
  CHECK(rows[0].passed);
  CHECK(rows[1].passed);
  const json nested = {{1, nullptr}, {{2, 3}}};
  const std::vector<double> numbers = flat_numbers(JsonValue(nested, "nested"));
  REQUIRE(numbers.size() == 4);
  CHECK(std::isnan(numbers[1]));
  CHECK(numbers[3] == 3);
}

TEST_CASE("reference file: what is wrong with a file is named with its place") {
  for (const char* field : {"id", "function", "inputs", "expected", "rel_tol", "abs_tol"}) {
    json file = one_case;
    file["cases"][0].erase(field);
    CHECK(error_of(file) ==
          "reference file.cases[0]." + std::string(field) + ": expected this field, got none");
  }
  json file = one_case;
  file["cases"][0]["rel_tol"] = "small";
  CHECK(error_of(file) == "reference file.cases[0].rel_tol: expected a number, got \"small\"");
  file = one_case;
  file["cases"][0]["expected"]["terms"] = {1, {{"a", 2}}};
  CHECK(error_of(file) == "reference file.cases[0].expected.terms[1]: expected a number, got {\"a\":2}");
  CHECK(error_of({{"subject", "sums"}}) == "reference file.cases: expected this field, got none");
  CHECK(error_of({{"subject", "products"}}) == "reference file.subject: expected sums, got products");
  CHECK(error_of(json::array()) == "reference file: expected an object, got []");
}

TEST_CASE("reference file: a case that gives other numbers, or none, fails its row only") {
  json file = one_case;
  file["cases"][0]["expected"] = {{"product", 2}, {"sum", 3}, {"terms", {1, 2, 3}}};
  const Rows rows = rows_of(file);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].name == "two/product: product: no field of this name is computed");
  CHECK(rows[1].passed);
  CHECK(rows[2].name == "two/terms: the file holds 3 numbers, computed 2");
  file["cases"][0]["inputs"] = {{"terms", "many"}};
  CHECK(rows_of(file)[0].name ==
        "two: reference file.cases[0].inputs.terms: expected a list of numbers, got \"many\"");
  file["cases"][0]["function"] = "product";
  CHECK(rows_of(file)[0].name == "two: unknown function \"product\"");
}

TEST_CASE("reference file: every theory rejects another subject and a missing section alike") {
  const auto reject = [](const char* subject, const char* section, const auto& check_reference) {
    CHECK_THROWS_WITH_AS(
        (void)check_reference(json{{"subject", "kernels"}}),
        (std::string("reference file.subject: expected ") + subject + ", got kernels").c_str(), DataError);
    CHECK_THROWS_WITH_AS(
        (void)check_reference(json{{"subject", subject}}),
        (std::string("reference file.") + section + ": expected this field, got none").c_str(), DataError);
    CHECK_THROWS_WITH_AS((void)check_reference(json::array()), "reference file: expected an object, got []",
                         DataError);
  };
  reject("shaped-transformer", "coefficients",
         [](const json& file) { return covariance_sde::check_reference(file); });
  reject("head-specialization", "cases",
         [](const json& file) { return specialization::check_reference(file); });
  reject("signal-propagation", "cases", [](const json& file) { return propagation::check_reference(file); });
}
