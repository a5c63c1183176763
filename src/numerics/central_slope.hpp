#pragma once

#include <array>
#include <cstddef>

namespace widelimit::numerics {

/// Weights of f(k step) - f(-k step), k = 1, 2, ..., whose sum is step times f'(0): the central
/// difference of eighth order.
inline constexpr std::array<double, 4> central_weights = {4.0 / 5, -1.0 / 5, 4.0 / 105, -1.0 / 280};

/// The derivative at 0 of a smooth curve: truncation step^8 / 630 times its ninth derivative, rounding 1e-16 / step
/// times its size.
template <typename Curve>
double central_slope(const Curve& curve, double step) {
  double sum = 0;
  for (std::size_t k = 0; k < central_weights.size(); ++k) {
    const double at = static_cast<double>(k + 1) * step;
    sum += central_weights[k] * (curve(at) - curve(-at));
  }
  return sum / step;
}

}  // namespace widelimit::numerics
