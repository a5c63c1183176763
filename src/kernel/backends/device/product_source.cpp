#include "kernel/backends/device/product_source.hpp"

#include <fmt/format.h>

#include <limits>

#include "kernel/backends/device/cl/product_source.hpp"
#include "kernel/backends/device/source_beginning.hpp"

namespace widelimit {

using numerics::formula::Precision;

namespace {

// A block of 16 channels is added up plainly and blocks with their rounding errors, so that errors are those of a few
// additions however many channels there are.
}  // namespace

std::string product_source(Precision precision, Index group_side) {
  const double angle = precision == Precision::wide ? 16 * std::numeric_limits<double>::epsilon()
                                                    : double{std::numeric_limits<float>::epsilon()};
  return source_beginning(precision) +
         fmt::format("#define SIDE {}\n#define ANGLE {}\n", group_side, literal_of(angle, precision)) +
         mean_product_function + multiples_function + product_kernel;
}

}  // namespace widelimit
