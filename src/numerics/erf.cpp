#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <numbers>

#include "numerics/by_quadrature.hpp"
#include "numerics/checks.hpp"
#include "numerics/closed_form.hpp"
#include "numerics/formula/smooth_formulas.hpp"
#include "numerics/gauss_legendre.hpp"
#include "numerics/tilted_map.hpp"
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
    // A quarter of (1+2p)(1+2q) - 4c^2 is 1/4 + (p + q) / 2 + (pq - c^2).
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

  /// (1 + 2 b^2 p)(1 + 2 b^2 q) - 4 b^4 c^2 = 4 b^4 [(s + p)(s + q) - c^2] with s = 1 / (2 b^2).
  [[nodiscard]] TiltedDual numbers() const {
    return {.shift = 1 / (2 * rate_ * rate_),
            .weight = 2 * std::numbers::inv_pi * amplitude_ * amplitude_,
            .offset = offset_ * offset_};
  }
  [[nodiscard]] formula::ErfFormula text() const { return {{numbers()}}; }
  [[nodiscard]] bool on_devices() const { return has_rows(numbers()); }

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
    // sin(theta) = 2c / sqrt(PQ) and cos(theta) = 2 half / sqrt(PQ) in the units of b = 1, hence
    // theta = +-(pi/2 - from_end).
    const Angle angle{std::atan2(half, std::abs(c)), c < 0 ? -1.0 : 1.0, shift_ / std::sqrt(0.5 + p),
                      shift_ / std::sqrt(0.5 + q)};
    const double left = mean(p), right = mean(q), two_over_pi = 2 * std::numbers::inv_pi;
    const double slope = two_over_pi / half * angle.integrand(angle.from_end);
    const double value = left * right + amplitude_ * amplitude_ * two_over_pi * angle.integral();
    return {static_cast<Scalar>(value), static_cast<Scalar>(amplitude_ * amplitude_ * square * slope)};
  }

  /// In the units of b = 1, with D = (1+2p)(1+2q) - 4c^2 and N = 1 + p + q - 2c: E[phi' phi'] is D^(-1/2)
  /// exp(-2 s^2 N / D) but for a factor, and phi'' = -2 (x + s) phi' with Stein's lemma gives the slope of the value in
  /// p, -(c E[phi'(u) phi'(v)] + s E[phi'(u) phi(v)]) / (1 + 2p).
  [[nodiscard]] DualSlopes slopes(double narrow_p, double narrow_q, double narrow_c, double root) const {
    const double square = rate_ * rate_;
    const Entry at{square * narrow_p, square * narrow_q, square * narrow_c, square * root, shift_};
    const Dual<double> entry = dual(narrow_p, narrow_q, narrow_c, root);
    const double g = entry.derivative / square;
    return {entry,
            {square * value_slope(at, g), square * entry.derivative * at.log_slope(at.q)},
            {square * value_slope(at.exchanged(), g), square * entry.derivative * at.log_slope(at.p)},
            square * entry.derivative * at.log_slope_in_c(),
            entry.derivative};
  }

  /// The slopes above cancel for p = q = c, where D = 1 + 4p and N = 1: their sum is smaller by p.
  [[nodiscard]] SelfSlopes self_slopes(double narrow_p) const {
    const double square = rate_ * rate_, p = square * narrow_p, side = 1 + 2 * p, d = 1 + 4 * p;
    const Dual<double> entry = dual(narrow_p, narrow_p, narrow_p, 0.0);
    const double twice = 2 * shift_ * mixed_mean({p, p, p, 0, shift_});
    return {entry,
            {(entry.derivative - square * twice) / side,
             square * entry.derivative * ((8 * shift_ * shift_ / d - 2) / d)}};
  }

 private:
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
};

/// Its dual is an integral for each entry, which devices take from tables of the function.
class ShiftedErfActivation final : public ClosedForm<ShiftedErf>, public ByQuadrature {
 public:
  explicit ShiftedErfActivation(const ShiftedErf& form) : ClosedForm<ShiftedErf>(form), form_{form} {}

  [[nodiscard]] std::shared_ptr<const QuadratureActivation> by_quadrature() const override {
    std::call_once(made_, [&] {
      QuadratureOptions options;
      options.name = "erf";
      options.finds_kinks = false;
      quadrature_ = quadrature_activation([form = form_](double x) { return form.value(x); },
                                          [form = form_](double x) { return form.derivative(x); }, options);
    });
    return quadrature_;
  }

 private:
  ShiftedErf form_;
  mutable std::once_flag made_;
  mutable std::shared_ptr<const QuadratureActivation> quadrature_;
};

ActivationPtr affine_erf(const AffineErf& form) { return make_tilted_form(form); }

}  // namespace

ActivationPtr erf() { return affine_erf(AffineErf{1, 1, 0}); }

ActivationPtr erf(double amplitude, double rate, double phase, double offset) {
  require_finite("erf", "a", amplitude);
  require_finite("erf", "b", rate);
  require_finite("erf", "c", phase);
  require_finite("erf", "d", offset);
  if (rate == 0) return polynomial({amplitude * std::erf(phase) + offset});
  if (phase == 0) return affine_erf(AffineErf{amplitude, rate, offset});
  return std::make_shared<const ShiftedErfActivation>(ShiftedErf{amplitude, rate, phase, offset});
}

/// The constant is that of Sigmoid_like in neural-tangents, so that the kernels agree.
ActivationPtr sigmoid_like() { return erf(0.5, 1 / 2.4020563531719796, 0, 0.5); }

}  // namespace widelimit::numerics
