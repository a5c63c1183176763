#include <algorithm>
#include <cmath>
#include <numbers>

#include "numerics/checks.hpp"
#include "numerics/closed_form.hpp"
#include "numerics/gauss_legendre.hpp"
#include "widelimit/numerics/activations.hpp"

namespace widelimit::numerics {
namespace {

/// erf(x)
struct Erf {
  [[nodiscard]] static double value(double x) { return std::erf(x); }
  [[nodiscard]] static double derivative(double x) { return 2 * std::numbers::inv_sqrtpi * std::exp(-x * x); }

  /// (2/pi) arcsin(2c / sqrt((1+2p)(1+2q))) as an arctangent: (1+2p)(1+2q) - 4c^2 is a sum of positive terms
  /// once written with the determinant, so neither part cancels at large variances.
  template <typename Scalar>
  [[nodiscard]] static Dual<Scalar> dual(Scalar p, Scalar q, Scalar c, double root) {
    const double sides = 0.25 + (static_cast<double>(p) / 2 + static_cast<double>(q) / 2);
    const auto half = static_cast<Scalar>(root_of_sum(sides, root));
    constexpr Scalar two_over_pi = 2 * std::numbers::inv_pi_v<Scalar>;
    return {two_over_pi * std::atan2(c, half), two_over_pi / half};
  }
};

/// a erf(b x) + d: erf is odd, so that d adds d^2 to the value and nothing else.
class AffineErf {
 public:
  AffineErf(double amplitude, double rate, double offset)
      : amplitude_{amplitude}, rate_{rate}, offset_{offset} {}

  [[nodiscard]] double value(double x) const { return amplitude_ * Erf::value(rate_ * x) + offset_; }
  [[nodiscard]] double derivative(double x) const { return amplitude_ * rate_ * Erf::derivative(rate_ * x); }

  template <typename Scalar>
  [[nodiscard]] Dual<Scalar> dual(Scalar p, Scalar q, Scalar c, double root) const {
    const auto square = static_cast<Scalar>(rate_ * rate_);
    const auto factor = static_cast<Scalar>(amplitude_ * amplitude_);
    const Dual<Scalar> inner = Erf::dual(square * p, square * q, square * c, rate_ * rate_ * root);
    return {factor * inner.value + static_cast<Scalar>(offset_ * offset_),
            factor * square * inner.derivative};
  }

 private:
  double amplitude_;
  double rate_;
  double offset_;
};

/// a erf(b x + s) + d. With P = 1 + 2 b^2 p, Q likewise, h = s sqrt(2 / P), k = s sqrt(2 / Q): the mean of erf is
/// m(p) = erf(s / sqrt(P)), the slope of the value in c is E[phi' phi'], a Gaussian integral, and in the angle theta
/// with sin(theta) = 2 b^2 c / sqrt(P Q) Price's theorem becomes
///     E[erf erf] = m(p) m(q) + (2 / pi) int_0^theta exp(-(h^2 + k^2 - 2 h k sin t) / (2 cos^2 t)) dt,
/// the integral of a bivariate normal probability (Plackett, Biometrika 41, 1954). It is steep only near +-pi/2, so
/// that the panels of the integration halve towards there.
class ShiftedErf {
 public:
  ShiftedErf(double amplitude, double rate, double shift, double offset)
      : amplitude_{amplitude}, rate_{rate}, shift_{shift}, offset_{offset} {}

  [[nodiscard]] double value(double x) const { return amplitude_ * std::erf(rate_ * x + shift_) + offset_; }
  [[nodiscard]] double derivative(double x) const {
    return amplitude_ * rate_ * Erf::derivative(rate_ * x + shift_);
  }

  template <typename Scalar>
  [[nodiscard]] Dual<Scalar> dual(Scalar narrow_p, Scalar narrow_q, Scalar narrow_c, double root) const {
    const double square = rate_ * rate_;
    const double p = square * static_cast<double>(narrow_p), q = square * static_cast<double>(narrow_q);
    const double c = square * static_cast<double>(narrow_c);
    // Half the root of (1 + 2p)(1 + 2q) - 4c^2, a sum of positive terms.
    const double half = root_of_sum(0.25 + (p / 2 + q / 2), square * root);
    const Angle angle{std::atan2(half, std::abs(c)), c < 0 ? -1.0 : 1.0, shift_ / std::sqrt(0.5 + p),
                      shift_ / std::sqrt(0.5 + q)};
    const double left = mean(p), right = mean(q), two_over_pi = 2 * std::numbers::inv_pi;
    const double slope = two_over_pi / half * angle.integrand(angle.from_end);
    const double value = left * right + amplitude_ * amplitude_ * two_over_pi * angle.integral();
    return {static_cast<Scalar>(value), static_cast<Scalar>(amplitude_ * amplitude_ * square * slope)};
  }

 private:
  /// The end of the integral, +-(pi/2 - from_end), and h and k.
  struct Angle {
    double from_end;
    double sign;
    double h;
    double k;

    /// At +-(pi/2 - x). The exponent is written without the cancellation of h^2 + k^2 - 2 h k at the upper end.
    [[nodiscard]] double integrand(double x) const {
      const double sine = std::sin(x), half_sine = std::sin(x / 2);
      const double difference = h - sign * k;
      return std::exp(-(difference * difference + 4 * sign * h * k * half_sine * half_sine) /
                      (2 * sine * sine));
    }

    [[nodiscard]] double integral() const {
      double sum = 0;
      for (double end = std::numbers::pi / 2; end > from_end; end /= 2)
        gauss_legendre_15().integrate(std::max(end / 2, from_end), end,
                                      [&](double x, double weight) { sum += weight * integrand(x); });
      return sign * sum;
    }
  };

  [[nodiscard]] double mean(double p) const {
    return amplitude_ * std::erf(shift_ / std::sqrt(1 + 2 * p)) + offset_;
  }

  double amplitude_;
  double rate_;
  double shift_;
  double offset_;
};

}  // namespace

ActivationPtr erf() { return make_closed_form(Erf{}); }

ActivationPtr erf(double amplitude, double rate, double phase, double offset) {
  require_finite("erf", "a", amplitude);
  require_finite("erf", "b", rate);
  require_finite("erf", "c", phase);
  require_finite("erf", "d", offset);
  if (amplitude == 1 && rate == 1 && phase == 0 && offset == 0) return erf();
  if (phase == 0) return make_closed_form(AffineErf{amplitude, rate, offset});
  if (rate == 0) return make_closed_form(AffineErf{0, 0, amplitude * std::erf(phase) + offset});
  return make_closed_form(ShiftedErf{amplitude, rate, phase, offset});
}

ActivationPtr sigmoid_like() { return erf(0.5, 1 / 2.4020563531719796, 0, 0.5); }

}  // namespace widelimit::numerics
