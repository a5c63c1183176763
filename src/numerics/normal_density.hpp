#pragma once

#include <cmath>
#include <numbers>

namespace widelimit::numerics {

/// Density of the standard normal distribution.
inline double normal_density(double z) {
  return std::exp(-z * z / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
}

/// Its root, which stays a number of double up to 53 standard deviations: the density itself does up to 38.
inline double root_normal_density(double z) {
  constexpr double at_zero = 0.63161877774606470;  // (2 pi)^(-1/4)
  return at_zero * std::exp(-z * z / 4);
}

}  // namespace widelimit::numerics
