#include <algorithm>
#include <cmath>

#include "widelimit/numerics/activations.hpp"
#include "widelimit/numerics/quadrature_activation.hpp"

/// There is one object of each kind in a process: they share their tables.
namespace widelimit::numerics {
namespace {

/// 1 / (1 + exp(-x)); the exponential overflows to infinity at worst, which gives 0.
double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// logistic(x) logistic(-x), which does not cancel in the tails.
double logistic_slope(double x) { return logistic(x) * logistic(-x); }

/// 1 - tanh^2, which does not cancel in the tails.
double tanh_slope(double x) { return 4 * logistic_slope(2 * x); }

/// log(1 + exp(x)) without overflow.
double log_one_plus_exp(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

double silu_slope(double x) { return logistic(x) + x * logistic_slope(x); }

}  // namespace

ActivationPtr tanh() {
  static const ActivationPtr activation =
      quadrature_activation([](double x) { return std::tanh(x); }, tanh_slope);
  return activation;
}

ActivationPtr sigmoid() {
  static const ActivationPtr activation = quadrature_activation(logistic, logistic_slope);
  return activation;
}

ActivationPtr silu() {
  static const ActivationPtr activation =
      quadrature_activation([](double x) { return x * logistic(x); }, silu_slope);
  return activation;
}

ActivationPtr softplus() {
  static const ActivationPtr activation = quadrature_activation(log_one_plus_exp, logistic);
  return activation;
}

}  // namespace widelimit::numerics
