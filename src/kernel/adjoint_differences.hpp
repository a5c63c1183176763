#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <vector>

#include "widelimit/numerics/random_stream.hpp"

/// How the laws of adjoints compare: L, a weighted sum of what a stage makes of its inputs, along a random direction
/// against the inner product of its adjoints with that direction.
namespace widelimit::adjoint_laws {

using LawNumbers = std::vector<double>;

inline LawNumbers normal_numbers(std::size_t size, numerics::RandomStream& random) {
  LawNumbers numbers(size);
  for (double& number : numbers) number = random.normal();
  return numbers;
}

inline double inner_product(const LawNumbers& left, const LawNumbers& right) {
  double sum = 0;
  for (std::size_t i = 0; i < left.size(); ++i) sum += left[i] * right[i];
  return sum;
}

inline double term_sizes(const LawNumbers& left, const LawNumbers& right) {
  double sum = 0;
  for (std::size_t i = 0; i < left.size(); ++i) sum += std::abs(left[i] * right[i]);
  return sum;
}

/// The derivative at 0 of a smooth curve, by the central difference of eighth order.
inline double slope_at_zero(const std::function<double(double)>& curve, double step) {
  constexpr std::array<double, 4> weights = {4.0 / 5, -1.0 / 5, 4.0 / 105, -1.0 / 280};
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double at = static_cast<double>(i + 1) * step;
    sum += weights[i] * (curve(at) - curve(-at));
  }
  return sum / step;
}

/// The difference relative to the terms of the adjoint's side and to what L is made of. A step that crosses a kink, as
/// of attention weights max(x, 0), tells nothing: the better of a long and a short one counts.
inline double relative_gap(const std::function<double(double)>& curve, const LawNumbers& adjoint,
                           const LawNumbers& direction, double size) {
  const double expected = inner_product(adjoint, direction);
  const double scale = term_sizes(adjoint, direction) + size + std::numeric_limits<double>::min();
  double least = std::numeric_limits<double>::infinity();
  for (const double step : {2e-3, 2e-6}) {
    const double gap = std::abs(slope_at_zero(curve, step) - expected) / scale;
    if (gap < least) least = gap;
  }
  return least;
}

}  // namespace widelimit::adjoint_laws
