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

  [[nodiscard]] static formula::GaborFormula text() { return {}; }

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
};

}  // namespace

ActivationPtr gabor() { return make_closed_form(Gabor{}); }

}  // namespace widelimit::numerics
