#include <fmt/format.h>

#include <cmath>

#include "numerics/checks.hpp"
#include "numerics/closed_form.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/activations.hpp"

/// Activations that are one formula (formula/vector_formulas.hpp), and the ranges of their numbers.
namespace widelimit::numerics {
namespace {

constexpr int highest_rectified_degree = 32;

void require_wave(const char* where, double amplitude, double frequency, double phase) {
  require_finite(where, "amplitude", amplitude);
  require_finite(where, "frequency", frequency);
  require_finite(where, "phase", phase);
}

}  // namespace

ActivationPtr identity() { return make_closed_form(formula::LinearFormula{1}); }

ActivationPtr gelu() { return make_closed_form(formula::GeluFormula()); }

ActivationPtr gabor() { return make_closed_form(formula::GaborFormula()); }

ActivationPtr sin(double amplitude, double frequency, double phase) {
  require_wave("sin", amplitude, frequency, phase);
  return make_closed_form(formula::WaveFormula(amplitude, frequency, phase, false));
}

ActivationPtr cos(double amplitude, double frequency, double phase) {
  require_wave("cos", amplitude, frequency, phase);
  return make_closed_form(formula::WaveFormula(amplitude, frequency, phase, true));
}

ActivationPtr rbf(double gamma) {
  if (!(gamma > 0 && std::isfinite(gamma)))
    throw ArgumentError(fmt::format("rbf: gamma must be positive and finite, got {}", gamma));
  return make_closed_form(formula::RadialFormula(gamma));
}

ActivationPtr exponential(double amplitude, double rate) {
  require_finite("exponential", "amplitude", amplitude);
  require_finite("exponential", "rate", rate);
  return make_closed_form(formula::GrowthFormula(amplitude, rate));
}

ActivationPtr gaussian(double amplitude, double rate) {
  require_finite("gaussian", "amplitude", amplitude);
  require_finite("gaussian", "rate", rate);
  if (rate == 0) return polynomial({amplitude});
  return make_closed_form(formula::GaussianFormula(amplitude, rate));
}

ActivationPtr sign() { return make_closed_form(formula::SignFormula{{jump_tolerance}}); }

ActivationPtr rectified_monomial(int degree) {
  require_within("rectified_monomial", "degree", degree, 0, highest_rectified_degree);
  if (degree == 0) return make_closed_form(formula::StepFormula{{jump_tolerance}});
  if (degree == 1) return relu();
  return make_closed_form(formula::RectifiedFormula{degree});
}

}  // namespace widelimit::numerics
