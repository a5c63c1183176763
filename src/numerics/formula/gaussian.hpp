// Rows include this text once more for every instruction set, in the namespace of it (numerics/rows/formula_rows.cpp).
#if !defined(WIDELIMIT_FORMULA_GAUSSIAN) || defined(WIDELIMIT_ROWS_NAMESPACE)
#define WIDELIMIT_FORMULA_GAUSSIAN

#ifdef WIDELIMIT_ROWS_NAMESPACE
namespace widelimit::numerics::WIDELIMIT_ROWS_NAMESPACE {
#else
#include <cmath>
#include <span>

#include "numerics/formula/tilted.hpp"

namespace widelimit::numerics::formula {

/// In gaussian.cpp: NumericalError unless the expectation of exp(rate x^2) exists. Numbers that are none pass.
void require_convergence(double rate, double p, double q, double c);

#endif

/// phi(x) = a exp(b x^2). E[exp(b (u^2 + v^2))] = D^(-1/2), D = det(I - 2 b Sigma) = 1 - 2b (p + q) + 4 b^2 (pq - c^2)
/// = 4 b^2 R^2 with s = -1 / (2b); the exponential tilts the covariance to c / D, hence E[4 b^2 u v exp(...)] = 4 b^2 c
/// D^(-3/2). With b > 0 the shift is negative, and the expectation exists for variances below half of it.
struct GaussianFormula : TiltedFormula {
  double amplitude, rate;

  GaussianFormula(double of_amplitude, double of_rate)
      : TiltedFormula{-1 / (2 * of_rate)}, amplitude{of_amplitude}, rate{of_rate} {}

  [[nodiscard]] double largest_variance(Precision precision) const {
    return shift < 0 ? -shift / 2 : TiltedFormula::largest_variance(precision);
  }
  void check(double p, double q, double c) const {
    if (rate > 0) require_convergence(rate, p, q, c);
  }
  template <typename N>
  [[nodiscard]] N value(const N& x) const {
    return N(amplitude) * exponential(N(rate) * x * x);
  }
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    return with_determinant(left, right, c, determinant(left[0], right[0], c));
  }
  template <typename N>
  [[nodiscard]] Mapped<N> with_determinant(std::span<const N> left, std::span<const N> right, const N& c,
                                           const N& det) const {
    const N over_root = N(1) / tilted_root(left[0], right[0], det);
    const N value = N(amplitude * amplitude * std::abs(shift)) * over_root;
    return {value, value * over_root * (c * over_root)};
  }
  /// The factor is value c / R^2, hence d log(factor) / dp = 3 d log(value) / dp.
  template <typename N>
  [[nodiscard]] MappedSlopes<N> slopes(std::span<const N> left, std::span<const N> right, const N& c) const {
    const N &p = left[0], &q = right[0];
    const Mapped<N> mapped = apply(left, right, c);
    const N over_root = N(1) / tilted_root(p, q, determinant(p, q, c)), thrice = N(3) * mapped.factor;
    const auto in_variance = [&](const N& other) {
      const N log_slope = (N(-0.5) * ((N(shift) + other) * over_root)) * over_root;
      return Mapped<N>{mapped.value * log_slope, thrice * log_slope};
    };
    const N bend = fused(thrice, c * over_root, mapped.value * over_root);
    return {mapped, in_variance(q), in_variance(p), {mapped.factor, bend * over_root}};
  }
};
}

#endif
