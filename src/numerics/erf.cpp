#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <numbers>
#include <optional>

#include "numerics/by_quadrature.hpp"
#include "numerics/checks.hpp"
#include "numerics/closed_form.hpp"
#include "numerics/gauss_legendre.hpp"
#include "widelimit/numerics/activations.hpp"

namespace widelimit::numerics {
namespace {

using formula::error_function;

/// a erf(b x + s) + d. With P = 1 + 2 b^2 p, Q likewise, h = s sqrt(2 / P), k = s sqrt(2 / Q): the mean of erf is
/// m(p) = erf(s / sqrt(P)), the slope of the value in c is E[phi' phi'], a Gaussian integral, and in the angle theta
/// with sin(theta) = 2 b^2 c / sqrt(P Q) Price's theorem becomes
///     E[erf erf] = m(p) m(q) + (2 / pi) int_0^theta exp(-(h^2 + k^2 - 2 h k sin t) / (2 cos^2 t)) dt,
/// the integral of a bivariate normal probability (Plackett, Biometrika 41, 1954). It is steep only near +-pi/2, so
/// that the panels of the integration halve towards there.
class ShiftedErf final : public Activation, public ByQuadrature, public formula::Readable {
 public:
  ShiftedErf(double amplitude, double rate, double shift, double offset)
      : amplitude_{amplitude}, rate_{rate}, shift_{shift}, offset_{offset} {}

  [[nodiscard]] double value(double x) const override { return phi(x); }
  [[nodiscard]] formula::RowFormulaPointer formula() const override { return nullptr; }
  [[nodiscard]] std::optional<formula::Symbol> written_value(const formula::Symbol& x) const override {
    return phi(x);
  }
  [[nodiscard]] double derivative(double x) const override {
    const double at = rate_ * x + shift_;
    return amplitude_ * rate_ * 2 * std::numbers::inv_sqrtpi * std::exp(-at * at);
  }

  [[nodiscard]] Dual<double> dual(double narrow_p, double narrow_q, double narrow_c) const override {
    const double square = rate_ * rate_;
    const double p = square * narrow_p, q = square * narrow_q, c = square * narrow_c;
    // Half the root of (1 + 2p)(1 + 2q) - 4c^2, a sum of positive terms.
    const double half =
        root_of_sum(0.25 + (p / 2 + q / 2), square * root_determinant(narrow_p, narrow_q, narrow_c));
    // sin(theta) = 2c / sqrt(PQ) and cos(theta) = 2 half / sqrt(PQ) in the units of b = 1, hence
    // theta = +-(pi/2 - from_end).
    const Angle angle{std::atan2(half, std::abs(c)), c < 0 ? -1.0 : 1.0, shift_ / std::sqrt(0.5 + p),
                      shift_ / std::sqrt(0.5 + q)};
    const double left = mean(p), right = mean(q), two_over_pi = 2 * std::numbers::inv_pi;
    const double slope = two_over_pi / half * angle.integrand(angle.from_end);
    const double value = left * right + amplitude_ * amplitude_ * two_over_pi * angle.integral();
    return {value, amplitude_ * amplitude_ * square * slope};
  }

  /// In the units of b = 1, with D = (1+2p)(1+2q) - 4c^2 and N = 1 + p + q - 2c: E[phi' phi'] is D^(-1/2)
  /// exp(-2 s^2 N / D) but for a factor, and phi'' = -2 (x + s) phi' with Stein's lemma gives the slope of the value in
  /// p, -(c E[phi'(u) phi'(v)] + s E[phi'(u) phi(v)]) / (1 + 2p).
  [[nodiscard]] DualSlopes slopes(double narrow_p, double narrow_q, double narrow_c) const override {
    const double square = rate_ * rate_, root = root_determinant(narrow_p, narrow_q, narrow_c);
    const Entry at{square * narrow_p, square * narrow_q, square * narrow_c, square * root, shift_};
    const Dual<double> entry = dual(narrow_p, narrow_q, narrow_c);
    const double g = entry.derivative / square;
    return {entry,
            {square * value_slope(at, g), square * entry.derivative * at.log_slope(at.q)},
            {square * value_slope(at.exchanged(), g), square * entry.derivative * at.log_slope(at.p)},
            square * entry.derivative * at.log_slope_in_c(),
            entry.derivative};
  }

  /// The slopes above cancel for p = q = c, where D = 1 + 4p and N = 1: their sum is smaller by p.
  [[nodiscard]] SelfSlopes self_slopes(double narrow_p) const override {
    const double square = rate_ * rate_, p = square * narrow_p, side = 1 + 2 * p, d = 1 + 4 * p;
    const Dual<double> entry = dual(narrow_p, narrow_p, narrow_p);
    const double twice = 2 * shift_ * mixed_mean({p, p, p, 0, shift_});
    return {entry,
            {(entry.derivative - square * twice) / side,
             square * entry.derivative * ((8 * shift_ * shift_ / d - 2) / d)}};
  }

  /// Devices take the dual from tables of the function.
  [[nodiscard]] std::shared_ptr<const QuadratureActivation> by_quadrature() const override {
    std::call_once(made_, [this] {
      QuadratureOptions options;
      options.name = "erf";
      options.finds_kinks = false;
      const auto copy = std::make_shared<ShiftedErf>(amplitude_, rate_, shift_, offset_);
      quadrature_ = quadrature_activation([copy](double x) { return copy->value(x); },
                                          [copy](double x) { return copy->derivative(x); }, options);
    });
    return quadrature_;
  }

 private:
  template <typename N>
  [[nodiscard]] N phi(const N& x) const {
    return N(amplitude_) * error_function(N(rate_) * x + N(shift_)) + N(offset_);
  }

  /// What the slopes of an entry are made of, in the units of b = 1.
  struct Entry {
    double p, q, c, root, shift;

    [[nodiscard]] Entry exchanged() const { return {q, p, c, root, shift}; }
    [[nodiscard]] double determinant_root() const { return 2 * root_of_sum(0.25 + (p / 2 + q / 2), root); }
    [[nodiscard]] double over_determinant(double x) const {
      return x / determinant_root() / determinant_root();
    }
    /// 2 s^2 N / D
    [[nodiscard]] double exponent() const {
      return 2 * shift * shift * over_determinant(1 + ((p - c) + (q - c)));
    }
    /// Of log E[phi' phi'], in the variance that is not `other`.
    [[nodiscard]] double log_slope(double other) const {
      return over_determinant((1 + 2 * other) * (2 * exponent() - 1) - 2 * shift * shift);
    }
    [[nodiscard]] double log_slope_in_c() const {
      return over_determinant(4 * c * (1 - 2 * exponent()) + 4 * shift * shift);
    }
    /// E[erf(v + s)] where u is weighted with exp(-(u + s)^2).
    [[nodiscard]] double tilted_mean() const {
      return std::erf(shift * (1 + 2 * (p - c)) / (std::sqrt(1 + 2 * p) * determinant_root()));
    }
  };

  /// E[phi'(u) phi(v)]
  [[nodiscard]] double mixed_mean(const Entry& at) const {
    const double side = 1 + 2 * at.p;
    const double mean_slope =
        2 * std::numbers::inv_sqrtpi * std::exp(-at.shift * at.shift / side) / std::sqrt(side);
    return amplitude_ * mean_slope * (amplitude_ * at.tilted_mean() + offset_);
  }

  /// The slope of the value in p; g = E[phi'(u) phi'(v)].
  [[nodiscard]] double value_slope(const Entry& at, double g) const {
    return -(at.c * g + at.shift * mixed_mean(at)) / (1 + 2 * at.p);
  }

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
      // Panels [end / 2, end] shrink geometrically towards x = 0, where the integrand can be steep.
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
  mutable std::once_flag made_;
  mutable std::shared_ptr<const QuadratureActivation> quadrature_;
};

}  // namespace

ActivationPtr erf() { return make_closed_form(formula::ErfFormula(1, 1, 0)); }

ActivationPtr erf(double amplitude, double rate, double phase, double offset) {
  require_finite("erf", "a", amplitude);
  require_finite("erf", "b", rate);
  require_finite("erf", "c", phase);
  require_finite("erf", "d", offset);
  if (rate == 0) return polynomial({amplitude * std::erf(phase) + offset});
  if (phase == 0) return make_closed_form(formula::ErfFormula(amplitude, rate, offset));
  return std::make_shared<const ShiftedErf>(amplitude, rate, phase, offset);
}

/// The constant is that of Sigmoid_like in neural-tangents, so that the kernels agree.
ActivationPtr sigmoid_like() { return erf(0.5, 1 / 2.4020563531719796, 0, 0.5); }

}  // namespace widelimit::numerics
