// Runs all reference cases of a folder and prints a table: reference_table [FOLDER] [PATTERN]
#include <fmt/format.h>

#include <exception>
#include <string>

#include "support/reference_case.hpp"
#include "widelimit/error.hpp"

namespace {

using namespace widelimit::testing;

/// Prints one line; true if the case is within its tolerance in double.
bool report(const ReferenceCase& reference) {
  try {
    const Deviation in_double = deviation<double>(reference), in_float = deviation<float>(reference);
    const bool passed = in_double.nngp <= reference.tolerance && in_double.ntk <= reference.tolerance;
    fmt::print("{:<42} {:>9.1e} {:>9.1e} {:>9.1e} {:>9.1e} {:>9.1e}  {}\n", reference.name,
               reference.tolerance, in_double.nngp, in_double.ntk, in_float.nngp, in_float.ntk,
               passed ? "passed" : "FAILED");
    return passed;
  } catch (const widelimit::Error& error) {
    fmt::print("{:<42} {:>9.1e} {}\n", reference.name, reference.tolerance, error.what());
    return false;
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto large = large_reference_folder();
    const std::filesystem::path folder = argc > 1 ? argv[1] : large.value_or(small_reference_folder());
    const std::string pattern = argc > 2 ? argv[2] : "";
    fmt::print("{:<42} {:>9} {:>9} {:>9} {:>9} {:>9}\n", folder.filename().string(), "tolerance", "nngp",
               "ntk", "float nngp", "float ntk");
    int failed = 0, passed = 0;
    for (const ReferenceCase& reference : reference_cases(folder)) {
      if (reference.name.find(pattern) == std::string::npos) continue;
      (report(reference) ? passed : failed) += 1;
    }
    fmt::print("{} passed, {} failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "reference_table: {}\n", error.what());
    return 2;
  }
}
