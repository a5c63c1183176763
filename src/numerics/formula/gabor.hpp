// Rows include this text once more for every instruction set, in the namespace of it (numerics/rows/formula_rows.cpp).
#if !defined(WIDELIMIT_FORMULA_GABOR) || defined(WIDELIMIT_ROWS_NAMESPACE)
#define WIDELIMIT_FORMULA_GABOR

#ifdef WIDELIMIT_ROWS_NAMESPACE
namespace widelimit::numerics::WIDELIMIT_ROWS_NAMESPACE {
#else
#include <span>

#include "numerics/formula/arc.hpp"
#include "numerics/formula/waves.hpp"

namespace widelimit::numerics::formula {
#endif

/// phi(x) = exp(-x^2) sin(x). The exponentials tilt the covariance S to S (I + 2 S)^(-1) and leave the factor D^(-1/2),
/// D = det(I + 2 S) = 1 + 2 (p + q) + 4 (pq - c^2): covariance c / D, sum of variances s = (p + q + 4 (pq - c^2)) / D.
/// With E[sin u sin v] = exp(-s / 2) sinh(c / D) for these,
///     value = D^(-1/2) exp(-s / 2) sinh(c / D),
/// and its slope in c, by D' = -8c and s' = -8 c (1 + p + q) / D^2,
///     derivative = D^(-1/2) exp(-s / 2)
///                  [(4c / D) (1 + (1 + p + q) / D) sinh(c / D) + (1 + 8 c^2 / D) / D cosh(c / D)].
/// All terms are positive: nothing cancels. (Derived here.)
struct GaborFormula : ExponentialFormula {
  [[nodiscard]] static double largest_variance(Precision precision) {
    return precision == Precision::narrow ? 1e15 : 1e140;
  }
  template <typename N>
  [[nodiscard]] static N value(const N& x) {
    return exponential(-(x * x)) * sine(x);
  }
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    return with_determinant(left, right, c, determinant(left[0], right[0], c));
  }
  template <typename N>
  [[nodiscard]] Mapped<N> with_determinant(std::span<const N> left, std::span<const N> right, const N& c,
                                           const N& plain_determinant) const {
    const N one = N(1), four = N(4), det = four * plain_determinant, sides = left[0] + right[0];
    const N d = one + (N(2) * sides + det), inverse = one / d;
    const N factor = exponential(N(-0.5) * ((sides + det) * inverse)) / root(d);
    const N tilted = c * inverse, sine = hyperbolic_sine(tilted);
    const N weight = four * tilted * (one + (one + sides) * inverse);
    const N cosine = root(fused(sine, sine, one));
    return {factor * sine, factor * fused(weight, sine, fused(N(8) * tilted, c, one) * inverse * cosine)};
  }
};
}

#endif
