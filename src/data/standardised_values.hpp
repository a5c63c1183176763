#pragma once

#include <cmath>
#include <span>

namespace widelimit::data {

/// Writes values to `target` less their mean and divided by (standard deviation + offset); sums run in double, and the
/// standard deviation divides by the number of values.
template <typename Scalar, typename Target>
void write_standardised(std::span<const Scalar> values, Target* target, double deviation_offset) {
  const auto count = static_cast<double>(values.size());
  double sum = 0;
  for (const Scalar value : values) sum += value;
  const double mean = sum / count;
  double squares = 0;
  for (const Scalar value : values) squares += (value - mean) * (value - mean);
  const double divisor = std::sqrt(squares / count) + deviation_offset;
  for (const Scalar value : values) *target++ = static_cast<Target>((value - mean) / divisor);
}

}  // namespace widelimit::data
