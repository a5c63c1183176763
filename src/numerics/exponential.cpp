#include <cmath>

#include "numerics/checks.hpp"
#include "numerics/exponential_map.hpp"
#include "numerics/formula/smooth_formulas.hpp"
#include "numerics/tilted_map.hpp"
#include "widelimit/numerics/activations.hpp"

namespace widelimit::numerics {
namespace {

class Exponential {
 public:
  Exponential(double amplitude, double rate) : amplitude_{amplitude}, rate_{rate} {}

  [[nodiscard]] double value(double x) const { return amplitude_ * std::exp(rate_ * x); }
  [[nodiscard]] double derivative(double x) const { return rate_ * value(x); }

  [[nodiscard]] formula::GrowthFormula text() const {
    const double square = rate_ * rate_;
    return formula::GrowthFormula({.rate = square / 2, .weight = amplitude_ * amplitude_, .slope = square});
  }

 private:
  double amplitude_;
  double rate_;
};

/// E[exp(b (u^2 + v^2))] = D^(-1/2), D = det(I - 2 b Sigma) = 1 - 2b (p + q) + 4 b^2 (pq - c^2); the
/// exponential tilts the covariance to c / D, hence E[4 b^2 u v exp(...)] = 4 b^2 c D^(-3/2).
class Gaussian {
 public:
  Gaussian(double amplitude, double rate) : amplitude_{amplitude}, rate_{rate} {}

  [[nodiscard]] double value(double x) const { return amplitude_ * std::exp(rate_ * x * x); }
  [[nodiscard]] double derivative(double x) const { return 2 * rate_ * x * value(x); }

  template <typename Scalar>
  [[nodiscard]] Dual<Scalar> dual(Scalar p, Scalar q, Scalar c, double root_det) const {
    const double twice = 2 * rate_;
    const double sides = 1 - twice * (static_cast<double>(p) + static_cast<double>(q));
    // With a negative rate the expectation exists for all variances.
    if (rate_ > 0) require_convergence(p, q, c, sides + twice * root_det * (twice * root_det));
    const double root = root_of_sum(sides, twice * root_det);
    const double value = amplitude_ * amplitude_ / root;
    // Quotients are taken one after the other, because powers of the root leave the range before they do.
    const double slope = twice / root * (twice * static_cast<double>(c) / root);
    return {static_cast<Scalar>(value), static_cast<Scalar>(slope * value)};
  }

  /// D = 4 b^2 [(s + p)(s + q) - c^2] with s = -1 / (2b).
  [[nodiscard]] TiltedDual numbers() const {
    const double shift = -1 / (2 * rate_);
    return {.shift = shift, .weight = amplitude_ * amplitude_ * std::abs(shift)};
  }
  [[nodiscard]] formula::GaussianFormula text() const { return {{numbers()}}; }
  /// Devices do not tell where the expectation diverges.
  [[nodiscard]] bool on_devices() const { return has_rows(numbers()); }

 private:
  /// I - 2b Sigma is positive definite. Written so that NaN passes on as NaN, not as an error about
  /// variances.
  template <typename Scalar>
  void require_convergence(Scalar p, Scalar q, Scalar c, double inverse_square) const {
    const double twice = 2 * rate_;
    // D is positive as well where both eigenvalues of I - 2b Sigma are negative, so its diagonal is tested too.
    const bool diverges = twice * static_cast<double>(p) >= 1 || twice * static_cast<double>(q) >= 1;
    if (!(diverges || inverse_square <= 0)) return;
    throw NumericalError(fmt::format(
        "gaussian: the expectation of exp({0} x^2) diverges for variances {1} and {2} with covariance {3}; "
        "variances must stay below 1/(4 rate) = {4}: use a negative rate or smaller weight variances",
        rate_, p, q, c, 1 / (4 * rate_)));
  }

  double amplitude_;
  double rate_;
};

}  // namespace

ActivationPtr exponential(double amplitude, double rate) {
  require_finite("exponential", "amplitude", amplitude);
  require_finite("exponential", "rate", rate);
  const Exponential form{amplitude, rate};
  return make_vector_form(
      form, ExponentialMap<ExponentialDual>(form.text().dual, &ExponentialRows<float>::exponential,
                                            &ExponentialRows<double>::exponential));
}

ActivationPtr gaussian(double amplitude, double rate) {
  require_finite("gaussian", "amplitude", amplitude);
  require_finite("gaussian", "rate", rate);
  if (rate == 0) return polynomial({amplitude});
  const Gaussian form{amplitude, rate};
  // Tilted rows need a shift s > 0, which only a negative rate gives.
  return make_tilted_form(form);
}

}  // namespace widelimit::numerics
