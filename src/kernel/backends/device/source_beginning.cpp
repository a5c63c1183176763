#include "kernel/backends/device/source_beginning.hpp"

#include <fmt/format.h>

namespace widelimit {
namespace {

constexpr const char* exact_sums = R"(
// Adds a number to the sum of all before, and what rounding loses of it.
inline void add(real* sum, real* low, real part) {
  const real both = *sum + part, added = both - *sum;
  *low += (*sum - (both - added)) + (part - added);
  *sum = both;
}
)";

}  // namespace

std::string source_beginning(numerics::formula::Precision precision) {
  const bool wide = precision == numerics::formula::Precision::wide;
  return fmt::format("{}#pragma OPENCL FP_CONTRACT OFF\ntypedef {} real;\n{}",
                     wide ? "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" : "", wide ? "double" : "float",
                     exact_sums);
}

}  // namespace widelimit
