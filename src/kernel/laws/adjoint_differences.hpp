#pragma once

#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <vector>

#include "numerics/central_slope.hpp"
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

/// The gap between the slope of L along a direction and the inner product of its adjoints with it, relative to the
/// terms of the inner product and to `size`, the terms of L. A step that crosses a kink, as attention weights max(x,
/// 0) have one, says nothing about the slope. The better of a long and a short step counts for that reason.
inline double relative_gap(const std::function<double(double)>& curve, const LawNumbers& adjoint,
                           const LawNumbers& direction, double size) {
  const double expected = inner_product(adjoint, direction);
  const double scale = term_sizes(adjoint, direction) + size + std::numeric_limits<double>::min();
  double least = std::numeric_limits<double>::infinity();
  for (const double step : {2e-3, 2e-6}) {
    const double gap = std::abs(numerics::central_slope(curve, step) - expected) / scale;
    if (gap < least) least = gap;
  }
  return least;
}

}  // namespace widelimit::adjoint_laws
