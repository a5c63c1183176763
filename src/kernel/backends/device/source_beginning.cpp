#include "kernel/backends/device/source_beginning.hpp"

#include <fmt/format.h>

#include "kernel/backends/device/cl/source_beginning.hpp"
#include "widelimit/device_error.hpp"

namespace widelimit {

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
