#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace widelimit::numerics {

/// The angle of the i-th root of the Chebyshev polynomial T_count, whose cosine it is.
template <std::size_t count>
double chebyshev_angle(std::size_t i) {
  return std::numbers::pi * (static_cast<double>(i) + 0.5) / static_cast<double>(count);
}

/// Chebyshev coefficients of the interpolant, by the discrete cosine transform of its values at those roots.
template <std::size_t count>
std::array<double, count> chebyshev_series(const std::array<double, count>& values) {
  static const std::array<std::array<double, count>, count> cosines = [] {
    std::array<std::array<double, count>, count> table{};
    for (std::size_t k = 0; k < count; ++k)
      for (std::size_t i = 0; i < count; ++i)
        table[k][i] = std::cos(static_cast<double>(k) * chebyshev_angle<count>(i));
    return table;
  }();
  std::array<double, count> series{};
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t i = 0; i < count; ++i) series[k] += values[i] * cosines[k][i];
    series[k] *= (k == 0 ? 1.0 : 2.0) / static_cast<double>(count);
  }
  return series;
}

}  // namespace widelimit::numerics
