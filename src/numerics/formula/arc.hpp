#pragma once

#include "numerics/formula/number.hpp"
#include "numerics/rows/angle_series.hpp"

/// What the duals of erf, GELU and of ReLU-like functions share: pq - c^2, and angles.
namespace widelimit::numerics::formula {

/// pq - c^2, at least 0, whose plain difference cancels near correlation 1: with the rounding errors of the products
/// (Kahan). p == q == c gives exactly 0.
template <typename N>
N determinant(const N& p, const N& q, const N& c) {
  const N square = c * c;
  return at_least(N(0), fused(p, q, -square) - fused(c, c, -square));
}

/// An angle between 0 and pi / 2 over its sine; `distance` is 1 less its cosine.
template <typename N>
N angle_over_sine(const N& distance) {
  static const auto narrow = angle_series<float, 8>();
  static const auto wide = angle_series<double, 19>();
  return polynomial(Coefficients(narrow, wide), distance);
}

}  // namespace widelimit::numerics::formula
