#include <algorithm>
#include <cmath>
#include <numbers>

#include "numerics/checks.hpp"
#include "numerics/exponential_map.hpp"
#include "numerics/formula/smooth_formulas.hpp"
#include "widelimit/numerics/activations.hpp"

namespace widelimit::numerics {
namespace {

/// e1 + k e2 with e1 = exp(-h (p + q - 2c)), e2 = exp(-h (p + q + 2c)), h = frequency^2 / 2, where
/// k = 1 - deficit_from_one = excess_over_minus_one - 1. The product of two (co)sines of Gaussians is half of
/// it. Both exponents are at most 0, so that nothing overflows; for negative k the difference e1 - e2 is
/// taken by expm1, so that sin at tiny variances keeps its digits.
class ExponentialPair {
 public:
  ExponentialPair(double frequency, double k, double excess_over_minus_one)
      : half_square_{frequency * frequency / 2}, k_{k}, excess_{excess_over_minus_one} {}

  template <typename Scalar>
  [[nodiscard]] Scalar sum(Scalar p, Scalar q, Scalar c) const {
    const auto h = static_cast<Scalar>(half_square_);
    const Scalar near = std::exp(-h * std::max((p - c) + (q - c), Scalar{0}));
    // The product of both exponentials is exp(-2h (p + q)); `far` belongs to the sum of the two variables for c > 0.
    const Scalar far = std::exp(-h * std::max((p + c) + (q + c), Scalar{0}));
    if (k_ >= 0) return near + static_cast<Scalar>(k_) * far;
    // near - far, from the smaller distance to both, without cancellation for small 4hc.
    const Scalar difference = c >= 0 ? -near * std::expm1(-4 * h * c) : far * std::expm1(4 * h * c);
    return difference + static_cast<Scalar>(excess_) * far;
  }

  /// k
  [[nodiscard]] double weight() const { return k_; }

 private:
  double half_square_;
  double k_;
  double excess_;  ///< 1 + k, exact where k is near -1.
};

/// a sin(b x + c0): sin sin = [cos(difference) - cos(sum)] / 2, cos cos = [cos(difference) + cos(sum)] / 2.
class Sine {
 public:
  // sin sin has k = -cos(2 phase), cos cos the opposite. Products of sums and differences keep k exact near +-1.
  Sine(double amplitude, double frequency, double phase, double sin_phase, double cos_phase)
      : amplitude_{amplitude},
        frequency_{frequency},
        phase_{phase},
        value_weight_{amplitude * amplitude / 2},
        derivative_weight_{value_weight_ * frequency * frequency},
        sines_{frequency, (sin_phase - cos_phase) * (sin_phase + cos_phase), 2 * sin_phase * sin_phase},
        cosines_{frequency, (cos_phase - sin_phase) * (cos_phase + sin_phase), 2 * cos_phase * cos_phase} {}

  [[nodiscard]] double value(double x) const { return amplitude_ * std::sin(frequency_ * x + phase_); }
  [[nodiscard]] double derivative(double x) const {
    return amplitude_ * frequency_ * std::cos(frequency_ * x + phase_);
  }

  template <typename Scalar>
  [[nodiscard]] Dual<Scalar> dual(Scalar p, Scalar q, Scalar c) const {
    return {static_cast<Scalar>(value_weight_) * sines_.sum(p, q, c),
            static_cast<Scalar>(derivative_weight_) * cosines_.sum(p, q, c)};
  }

  /// phi'' = -b^2 phi.
  [[nodiscard]] DualSlopes slopes(double p, double q, double c, double) const {
    const double square = frequency_ * frequency_;
    const Dual<double> entry = dual(p, q, c);
    const Dual<double> side{-square / 2 * entry.value, -square / 2 * entry.derivative};
    return {entry, side, side, square * square * entry.value, entry.derivative};
  }

  /// The partial slopes cancel for p = q = c, where only the term of the sum of both variables depends on p.
  [[nodiscard]] SelfSlopes self_slopes(double p) const {
    const double square = frequency_ * frequency_;
    const double slope = 2 * derivative_weight_ * cosines_.weight() * std::exp(-2 * square * p);
    return {dual(p, p, p), {slope, -square * slope}};
  }

 private:
  double amplitude_;
  double frequency_;
  double phase_;
  double value_weight_;
  double derivative_weight_;
  ExponentialPair sines_;
  ExponentialPair cosines_;
};

/// a cos(b x + c0): the shifted sine, with its own pointwise functions so that cos(0) is exactly 1.
class Cosine {
 public:
  Cosine(double amplitude, double frequency, double phase)
      : amplitude_{amplitude},
        frequency_{frequency},
        phase_{phase},
        shifted_{amplitude, frequency, phase, std::cos(phase), -std::sin(phase)} {}

  [[nodiscard]] double value(double x) const { return amplitude_ * std::cos(frequency_ * x + phase_); }
  [[nodiscard]] double derivative(double x) const {
    return -amplitude_ * frequency_ * std::sin(frequency_ * x + phase_);
  }

  template <typename Scalar>
  [[nodiscard]] Dual<Scalar> dual(Scalar p, Scalar q, Scalar c) const {
    return shifted_.dual(p, q, c);
  }
  [[nodiscard]] DualSlopes slopes(double p, double q, double c, double root) const {
    return shifted_.slopes(p, q, c, root);
  }
  [[nodiscard]] SelfSlopes self_slopes(double p) const { return shifted_.self_slopes(p); }

 private:
  double amplitude_;
  double frequency_;
  double phase_;
  Sine shifted_;
};

class Rbf {
 public:
  explicit Rbf(double gamma) : gamma_{gamma} {}

  [[nodiscard]] double value(double x) const {
    return std::numbers::sqrt2 * std::sin(std::sqrt(2 * gamma_) * x + std::numbers::pi / 4);
  }
  [[nodiscard]] double derivative(double x) const {
    return 2 * std::sqrt(gamma_) * std::cos(std::sqrt(2 * gamma_) * x + std::numbers::pi / 4);
  }

  template <typename Scalar>
  [[nodiscard]] Dual<Scalar> dual(Scalar p, Scalar q, Scalar c) const {
    const auto gamma = static_cast<Scalar>(gamma_);
    const Scalar value = std::exp(-gamma * std::max((p - c) + (q - c), Scalar{0}));
    return {value, 2 * gamma * value};
  }
  [[nodiscard]] DualSlopes slopes(double p, double q, double c, double) const {
    const Dual<double> entry = dual(p, q, c);
    const Dual<double> side{-gamma_ * entry.value, -gamma_ * entry.derivative};
    return {entry, side, side, 2 * gamma_ * entry.derivative, entry.derivative};
  }

 private:
  double gamma_;
};

void require_wave(const char* where, double amplitude, double frequency, double phase) {
  require_finite(where, "amplitude", amplitude);
  require_finite(where, "frequency", frequency);
  require_finite(where, "phase", phase);
}

/// The weights of Sine and of its two ExponentialPairs.
ExponentialMap<WaveDual> wave_map(double amplitude, double frequency, double sin_phase, double cos_phase) {
  const double weight = amplitude * amplitude / 2, square = frequency * frequency;
  const WaveDual dual{.half_square = square / 2,
                      .value_weight = weight,
                      .derivative_weight = weight * square,
                      .k = (sin_phase - cos_phase) * (sin_phase + cos_phase),
                      .one_plus_k = 2 * sin_phase * sin_phase,
                      .one_minus_k = 2 * cos_phase * cos_phase};
  return {dual, &ExponentialRows<float>::wave, &ExponentialRows<double>::wave,
          formula::row_formula(formula::WaveFormula{dual})};
}

ExponentialMap<ExponentialDual> radial_map(double gamma) {
  const ExponentialDual dual{.rate = gamma, .weight = 1, .slope = 2 * gamma};
  return {dual, &ExponentialRows<float>::radial, &ExponentialRows<double>::radial,
          formula::row_formula(formula::RadialFormula{dual})};
}

}  // namespace

ActivationPtr sin(double amplitude, double frequency, double phase) {
  require_wave("sin", amplitude, frequency, phase);
  const double sine = std::sin(phase), cosine = std::cos(phase);
  return make_vector_form(Sine{amplitude, frequency, phase, sine, cosine},
                          wave_map(amplitude, frequency, sine, cosine));
}

ActivationPtr cos(double amplitude, double frequency, double phase) {
  require_wave("cos", amplitude, frequency, phase);
  return make_vector_form(Cosine{amplitude, frequency, phase},
                          wave_map(amplitude, frequency, std::cos(phase), -std::sin(phase)));
}

ActivationPtr rbf(double gamma) {
  if (!(gamma > 0 && std::isfinite(gamma)))
    throw ArgumentError(fmt::format("rbf: gamma must be positive and finite, got {}", gamma));
  return make_vector_form(Rbf{gamma}, radial_map(gamma));
}

}  // namespace widelimit::numerics
