#pragma once

#include <array>
#include <numbers>
#include <span>

#include "numerics/formula/arc.hpp"
#include "widelimit/numerics/formula/row_formula.hpp"

namespace widelimit::numerics::formula {

/// A positively homogeneous activation as its dual sees it: with theta the angle between u and v from the
/// nearer of correlation 1 and -1, derivative = aligned - weight theta or opposed + weight theta.
struct HomogeneousDual {
  double aligned;  ///< E[phi'(u)^2]
  double opposed;  ///< E[phi'(u) phi'(-u)]
  double weight;   ///< (positive slope - negative slope)^2 / (2 pi)
};

/// Positively homogeneous functions: the formula of rows/homogeneous_row.cpp, which is written for vectors by hand.
/// Auxiliary numbers: the variance, and its inverse root, -1 without a variance, which counts as uncorrelated.
struct HomogeneousFormula {
  HomogeneousDual dual;

  [[nodiscard]] static std::size_t auxiliary_count() { return 2; }
  [[nodiscard]] static double largest_variance(Precision precision) {
    return precision == Precision::narrow ? 1e15 : 1e140;
  }

  template <typename N>
  static std::array<N, 2> prepare(const N& variance) {
    return {variance, choose(is_less(N(0), variance), N(1) / root(variance), N(-1))};
  }

  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    const N weight = N(dual.weight), right_angle = N(std::numbers::pi / 2);
    const N root = steep_root(left[0], right[0], c);
    const N between = acute_angle(root, magnitude(c), left[1] * right[1]);
    const N known = choose(is_less(right[1], N(0)), right_angle, between);
    const N angle = choose(is_less(left[1], N(0)), right_angle, known);
    const N derivative = choose(is_less(c, N(0)), fused(weight, angle, N(dual.opposed)),
                                fused(-weight, angle, N(dual.aligned)));
    return {homogeneous_value(derivative, c, weight * root, left[0], right[0]), derivative};
  }
};

}  // namespace widelimit::numerics::formula
