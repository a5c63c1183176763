#pragma once

#include <cmath>
#include <numbers>

namespace widelimit::numerics {

/// Density of the standard normal distribution.
inline double normal_density(double z) {
  return std::exp(-z * z / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
}

}  // namespace widelimit::numerics
