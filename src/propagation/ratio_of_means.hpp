#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "widelimit/numerics/statistics.hpp"

namespace widelimit::propagation {

/// The mean of the numerators over that of the denominators, which come in pairs. The standard error is that of leading
/// order, from what the ratio leaves of each numerator; `alone` for a single pair.
[[nodiscard]] inline numerics::Estimate ratio_of_means(const std::vector<double>& numerators,
                                                       const std::vector<double>& denominators,
                                                       double alone) {
  double above = 0, below = 0;
  for (std::size_t i = 0; i < numerators.size(); ++i) {
    above += numerators[i];
    below += denominators[i];
  }
  const double ratio = above / below, mean = below / static_cast<double>(numerators.size());
  if (numerators.size() == 1) return {ratio, alone};
  std::vector<double> left(numerators.size());
  for (std::size_t i = 0; i < left.size(); ++i) left[i] = (numerators[i] - ratio * denominators[i]) / mean;
  return {ratio, numerics::mean(left).standard_error};
}

}  // namespace widelimit::propagation
