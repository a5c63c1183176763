#include "kernel/backends/device/source_beginning.hpp"

#include <fmt/format.h>

#include "widelimit/device_error.hpp"

namespace widelimit {
namespace {

constexpr const char* exact_sums = R"(
// Adds a number to the sum of all before, and what rounding loses of it.
inline void add(real* sum, real* low, real part) {
  const real both = *sum + part, added = both - *sum;
  *low += (*sum - (both - added)) + (part - added);
  *sum = both;
}

// Adds the products of numbers `step` apart, with what rounding loses of each.
inline void add_products(global const real* x, global const real* y, int count, int step, real* sum, real* low) {
  for (int c = 0; c < count * step; c += step) {
    const real product = x[c] * y[c];
    *low += fma(x[c], y[c], -product);
    add(sum, low, product);
  }
}
)";

}  // namespace

std::string source_beginning(numerics::formula::Precision precision) {
  const bool wide = precision == numerics::formula::Precision::wide;
  return fmt::format("{}#pragma OPENCL FP_CONTRACT OFF\ntypedef {} real;\n{}",
                     wide ? "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" : "", wide ? "double" : "float",
                     exact_sums);
}

std::string literal_of(double number, numerics::formula::Precision precision) {
  return numerics::formula::Statements(precision, "").literal(number);
}

void throw_beyond_type(const std::string& path, const NumericalError& error) {
  throw DeviceError(
      fmt::format("device: {}: {}; choose double precision, or the device cpu", path, error.what()));
}

}  // namespace widelimit
