#include <cmath>

#include "numerics/closed_form.hpp"
#include "numerics/formula/smooth_formulas.hpp"
#include "widelimit/numerics/activations.hpp"

namespace widelimit::numerics {
namespace {

/// exp(-x^2) sin(x). The exponentials tilt the covariance S to S (I + 2 S)^(-1) and leave the factor D^(-1/2), D =
/// det(I + 2 S) = 1 + 2 (p + q) + 4 (pq - c^2): covariance c / D, sum of variances s = (p + q + 4 (pq - c^2)) / D. With
/// E[sin u sin v] = exp(-s / 2) sinh(c / D) for these,
///     value = D^(-1/2) exp(-s / 2) sinh(c / D),
/// and its slope in c, by D' = -8c and s' = -8 c (1 + p + q) / D^2,
///     derivative = D^(-1/2) exp(-s / 2)
///                  [(4c / D) (1 + (1 + p + q) / D) sinh(c / D) + (1 + 8 c^2 / D) / D cosh(c / D)].
/// All terms are positive: nothing cancels. (Derived here.)
struct Gabor {
  [[nodiscard]] static double value(double x) { return std::exp(-x * x) * std::sin(x); }
  [[nodiscard]] static double derivative(double x) {
    return std::exp(-x * x) * (std::cos(x) - 2 * x * std::sin(x));
  }

  [[nodiscard]] static formula::RowFormulaPointer readable() {
    return formula::row_formula(formula::GaborFormula{});
  }

  /// s / 2, whose limit is 1 / 2 where D leaves the range of double.
  [[nodiscard]] static double half_sum(double p, double q, double root, double d) {
    return std::isfinite(d) ? (p + q + 4 * root * root) / (2 * d) : 0.5;
  }

  template <typename Scalar>
  [[nodiscard]] static Dual<Scalar> dual(Scalar narrow_p, Scalar narrow_q, Scalar narrow_c, double root) {
    const auto p = static_cast<double>(narrow_p), q = static_cast<double>(narrow_q);
    const auto c = static_cast<double>(narrow_c);
    const double d = 1 + 2 * (p + q) + 4 * root * root;
    const double factor = std::exp(-half_sum(p, q, root, d)) / std::sqrt(d);
    const double tilted = c / d, sine = std::sinh(tilted);
    const double slope =
        4 * tilted * (1 + (1 + p + q) / d) * sine + (1 + 8 * tilted * c) / d * std::cosh(tilted);
    return {static_cast<Scalar>(factor * sine), static_cast<Scalar>(factor * slope)};
  }

  /// With F = D^(-1/2) exp(-s / 2) and t = c / D: value = F sinh t, derivative = F (A sinh t + B cosh t), A the slope
  /// of log F in c, B that of t. (Derived here.)
  [[nodiscard]] static DualSlopes slopes(double p, double q, double c, double root) {
    const double d = 1 + 2 * (p + q) + 4 * root * root, m = (1 + p + q) / d;
    const double factor = std::exp(-half_sum(p, q, root, d)) / std::sqrt(d);
    const double t = c / d, tc = t * c;
    const double sine = factor * std::sinh(t), cosine = factor * std::cosh(t);
    const double a = 4 * t * (1 + m), b = (1 + 8 * tc) / d;
    const double a_in_c = 4 * (1 + m + 8 * tc * (1 + 2 * m)) / d, b_in_c = 8 * t / d * (3 + 16 * tc);
    const double value_in_c = a * sine + b * cosine;
    const auto side = [&](double other) {
      const double d_slope = 2 + 4 * other, ratio = d_slope / d;
      const double log_slope = -ratio / 2 - (d_slope * ratio / 4 + 4 * tc) / (2 * d), t_slope = -t * ratio;
      const double a_slope = 4 * t * (1 / d - ratio * (1 + 2 * m)), b_slope = -ratio / d * (1 + 16 * tc);
      return Dual<double>{
          log_slope * sine + t_slope * cosine,
          log_slope * value_in_c + (a_slope + t_slope * b) * sine + (b_slope + t_slope * a) * cosine};
    };
    return {{sine, value_in_c},
            side(q),
            side(p),
            (a * a + a_in_c + b * b) * sine + (2 * a * b + b_in_c) * cosine,
            value_in_c};
  }

  /// The slopes above cancel for p = q = c: their sum is smaller by p. With w = 1 / (1 + 4p), e = exp(-2p w),
  ///     value = sqrt(w) (1 - e) / 2,  derivative = sqrt(w) [2 - w + (w^2 + w - 1) e] / 2,
  /// and dw/dp = -4 w^2, de/dw = e / 2. (Derived here.)
  [[nodiscard]] static SelfSlopes self_slopes(double p) {
    const double w = 1 / (1 + 4 * p), cube = w * std::sqrt(w), rest = -std::expm1(-2 * (p * w));
    const double e = 1 - rest;
    return {dual(p, p, p, 0.0),
            {cube * (w * e - rest), -2 * cube * (1 - 1.5 * w + e * (((w / 2 + 3) * w + 1) * w - 0.5))}};
  }
};

}  // namespace

ActivationPtr gabor() { return make_closed_form(Gabor{}); }

}  // namespace widelimit::numerics
