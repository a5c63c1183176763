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
inline double slope_at_zero(const std::function<double(double)>& curve) {
  constexpr std::array<double, 4> weights = {4.0 / 5, -1.0 / 5, 4.0 / 105, -1.0 / 280};
  constexpr double step = 4e-3;
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double at = static_cast<double>(i + 1) * step;
    sum += weights[i] * (curve(at) - curve(-at));
  }
  return sum / step;
}

/// The difference relative to the terms of the adjoint's side and to what L is made of.
inline double relative_gap(const std::function<double(double)>& curve, const LawNumbers& adjoint,
                           const LawNumbers& direction, double size) {
  const double gap = std::abs(slope_at_zero(curve) - inner_product(adjoint, direction));
  const double deviation = gap / (term_sizes(adjoint, direction) + size + std::numeric_limits<double>::min());
  return std::isnan(deviation) ? std::numeric_limits<double>::infinity() : deviation;
}

}  // namespace widelimit::adjoint_laws
