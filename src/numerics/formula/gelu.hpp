// Rows include this text once more for every instruction set, in the namespace of it (numerics/rows/formula_rows.cpp).
#if !defined(WIDELIMIT_FORMULA_GELU) || defined(WIDELIMIT_ROWS_NAMESPACE)
#define WIDELIMIT_FORMULA_GELU

#ifdef WIDELIMIT_ROWS_NAMESPACE
namespace widelimit::numerics::WIDELIMIT_ROWS_NAMESPACE {
#else
#include <numbers>
#include <span>

#include "numerics/formula/tilted.hpp"

namespace widelimit::numerics::formula {
#endif

/// phi(x) = x P(x), P the normal distribution function. With n its density, and R^2 = det(I + Sigma) = 1 + p + q +
/// (pq - c^2):
///   E[P(u) P(v)] = 1/4 + arcsin(c / sqrt((1+p)(1+q))) / (2 pi) =: s,   arcsin(...) = atan2(c, R)
///   E[n(u) n(v)] = 1 / (2 pi R),   E[n'(u) P(v)] = -c / (2 pi R (1+p)),   E[u v n(u) n(v)] = c / (2 pi R^3).
/// Stein's lemma twice on E[u v P(u) P(v)], then (P + u n)(P + v n) for the derivative, give
///   value      = c s + [pq - c^2 + c^2 (1/(1+p) + 1/(1+q))] / (2 pi R)
///   derivative = s + c [1/(1+p) + 1/(1+q) + 1/R^2] / (2 pi R),
/// without a difference of large numbers for c >= 0.
struct GeluFormula : TiltedFormula {
  GeluFormula() : TiltedFormula{1} {}

  template <typename N>
  [[nodiscard]] static N value(const N& x) {
    return N(0.5) * x * complementary_error_function(N(-1 / std::numbers::sqrt2) * x);
  }
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    return with_determinant(left, right, c, determinant(left[0], right[0], c));
  }
  template <typename N>
  [[nodiscard]] Mapped<N> with_determinant(std::span<const N> left, std::span<const N> right, const N& c,
                                           const N& det) const {
    const N one = N(1), half = N(0.5), over_two_pi = N(std::numbers::inv_pi / 2);
    const N inverse = left[1] * right[1];
    const N tilted = tilted_root(left[0], right[0], det), over_root = one / tilted;
    const N both_positive = over_two_pi * acute_angle(tilted, magnitude(c), inverse);
    // For c < 0 s tends to 0, and 1/2 minus the other angle would lose it.
    const N s = choose(is_less(c, N(0)), both_positive, half - both_positive);
    const N shrinkage = (N(2) + (left[0] + right[0])) * (inverse * inverse);
    const N density = over_two_pi * over_root;
    const N rest = fused(c, c * shrinkage, det);
    const N slope = fused(over_root, over_root, shrinkage);
    return {fused(c, s, density * rest), fused(c * density, slope, s)};
  }
  /// With P = 1 / (1 + p), y = P (q + det) and k = P + Q + 3 / R^2; the sums are ordered so that little cancels.
  template <typename N>
  [[nodiscard]] MappedSlopes<N> slopes(std::span<const N> left, std::span<const N> right, const N& c) const {
    const N one = N(1), two = N(2), det = determinant(left[0], right[0], c);
    const N over_root = one / tilted_root(left[0], right[0], det), square = over_root * over_root;
    const N of_p = left[1] * left[1], of_q = right[1] * right[1], relative = c * over_root;
    const N shrinkage = of_p + of_q, weight = N(std::numbers::inv_pi / 2) * over_root;
    const N thrice = fused(N(3), square, shrinkage);
    const auto in_variance = [&](const N& own, const N& other) {
      const N y = (other + det) * own;
      const N inner = fused(y, fused(two, y, N(3)), -other);
      const N value = fused(det * over_root, one + y, inner * over_root);
      const N factor = fused(own, fused(two, own, one), thrice * ((one + other) * square));
      return Mapped<N>{(N(0.5) * weight) * (value * over_root), N(-0.5) * (weight * c) * factor};
    };
    const Mapped<N> mapped = with_determinant(left, right, c, det);
    const N bend = fused(relative * relative, thrice, (one + shrinkage) + square);
    return {mapped, in_variance(of_p, right[0]), in_variance(of_q, left[0]), {mapped.factor, weight * bend}};
  }
};
}

#endif
