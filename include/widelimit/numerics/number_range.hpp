#pragma once

#include <cstddef>

namespace widelimit::numerics {

/// How far numbers reach.
struct NumberRange {
  double smallest;
  double mean;
  double largest;
};

/// The range of `count` numbers, read once by `threads` threads, 0 for all that there are; its bits do not depend on
/// them. The sum for the mean is in double. NaN is neither smallest nor largest, and makes the mean NaN. ArgumentError
/// without numbers.
[[nodiscard]] NumberRange number_range(const float* numbers, std::size_t count, int threads = 0);
[[nodiscard]] NumberRange number_range(const double* numbers, std::size_t count, int threads = 0);

}  // namespace widelimit::numerics
