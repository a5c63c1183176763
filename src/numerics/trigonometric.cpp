#include <cmath>
#include <numbers>

#include "numerics/checks.hpp"
#include "numerics/exponential_map.hpp"
#include "numerics/formula/smooth_formulas.hpp"
#include "widelimit/numerics/activations.hpp"

namespace widelimit::numerics {
namespace {

/// a sin(b x + c0): sin sin = [cos(difference) - cos(sum)] / 2, cos cos = [cos(difference) + cos(sum)] / 2. With e1 =
/// exp(-h (p + q - 2c)), e2 = exp(-h (p + q + 2c)) and h = b^2 / 2 both duals are weight (e1 + k e2), where sin sin has
/// k = -cos(2 c0) and cos cos the opposite.
class Sine {
 public:
  // Products of sums and differences keep k exact near +-1.
  Sine(double amplitude, double frequency, double phase, double sin_phase, double cos_phase)
      : amplitude_{amplitude},
        frequency_{frequency},
        phase_{phase},
        numbers_{.half_square = frequency * frequency / 2,
                 .value_weight = amplitude * amplitude / 2,
                 .derivative_weight = amplitude * amplitude / 2 * frequency * frequency,
                 .k = (sin_phase - cos_phase) * (sin_phase + cos_phase),
                 .one_plus_k = 2 * sin_phase * sin_phase,
                 .one_minus_k = 2 * cos_phase * cos_phase} {}

  [[nodiscard]] double value(double x) const { return amplitude_ * std::sin(frequency_ * x + phase_); }
  [[nodiscard]] double derivative(double x) const {
    return amplitude_ * frequency_ * std::cos(frequency_ * x + phase_);
  }
  [[nodiscard]] formula::WaveFormula text() const { return formula::WaveFormula(numbers_); }

 private:
  double amplitude_;
  double frequency_;
  double phase_;
  WaveDual numbers_;
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

  [[nodiscard]] formula::WaveFormula text() const { return shifted_.text(); }

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

  [[nodiscard]] formula::RadialFormula text() const {
    return formula::RadialFormula({.rate = gamma_, .weight = 1, .slope = 2 * gamma_});
  }

 private:
  double gamma_;
};

void require_wave(const char* where, double amplitude, double frequency, double phase) {
  require_finite(where, "amplitude", amplitude);
  require_finite(where, "frequency", frequency);
  require_finite(where, "phase", phase);
}

template <typename Form>
ActivationPtr make_wave(const Form& form) {
  return make_vector_form(form, ExponentialMap<WaveDual>(form.text().dual, &ExponentialRows<float>::wave,
                                                         &ExponentialRows<double>::wave));
}

}  // namespace

ActivationPtr sin(double amplitude, double frequency, double phase) {
  require_wave("sin", amplitude, frequency, phase);
  return make_wave(Sine{amplitude, frequency, phase, std::sin(phase), std::cos(phase)});
}

ActivationPtr cos(double amplitude, double frequency, double phase) {
  require_wave("cos", amplitude, frequency, phase);
  return make_wave(Cosine{amplitude, frequency, phase});
}

ActivationPtr rbf(double gamma) {
  if (!(gamma > 0 && std::isfinite(gamma)))
    throw ArgumentError(fmt::format("rbf: gamma must be positive and finite, got {}", gamma));
  const Rbf form{gamma};
  return make_vector_form(form,
                          ExponentialMap<ExponentialDual>(form.text().dual, &ExponentialRows<float>::radial,
                                                          &ExponentialRows<double>::radial));
}

}  // namespace widelimit::numerics
