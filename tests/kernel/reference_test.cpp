// Gram matrices against the reference cases of tests/reference.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "support/reference_case.hpp"

namespace widelimit::testing {
namespace {

double float_tolerance(const ReferenceCase& reference) {
  if (reference.comparison == Comparison::standard_errors) return reference.tolerance;
  return reference.name == "near-identical" ? 1e-3 : 1e-4;
}

/// Checks all cases of a folder; returns how many they are.
int check_folder(const std::filesystem::path& folder) {
  int checked = 0;
  for (const ReferenceCase& reference : reference_cases(folder)) {
    CAPTURE(reference.name);
    const Deviation in_double = deviation<double>(reference), in_float = deviation<float>(reference);
    CHECK(in_double.nngp <= reference.tolerance);
    CHECK(in_double.ntk <= reference.tolerance);
    CHECK(in_float.nngp <= float_tolerance(reference));
    CHECK(in_float.ntk <= float_tolerance(reference));
    ++checked;
  }
  return checked;
}

TEST_CASE("kernels agree with the reference cases in the repository") {
  CHECK(check_folder(small_reference_folder()) >= 30);
}

TEST_CASE("kernels agree with all reference cases") {
  const auto folder = large_reference_folder();
  if (!folder) {
    MESSAGE("skipped: the large set of reference cases is not beside this checkout");
    return;
  }
  CHECK(check_folder(*folder) >= 93);
}

TEST_CASE("a wrong network does not agree with its reference case") {
  // The comparison itself can fail: another case's network on the same inputs.
  auto cases = reference_cases(small_reference_folder());
  const auto named = [&](const std::string& name) {
    return *std::find_if(cases.begin(), cases.end(), [&](const ReferenceCase& c) { return c.name == name; });
  };
  ReferenceCase crossed = named("fcn-relu");
  const Deviation right = deviation<double>(crossed);
  crossed.network = named("fcn-erf").network;
  const Deviation wrong = deviation<double>(crossed);
  CHECK(right.nngp < 1e-14);
  CHECK(wrong.nngp > 1e-2);
  CHECK(wrong.ntk > 1e-2);
}

}  // namespace
}  // namespace widelimit::testing
