#include "widelimit/numerics/quadrature_activation.hpp"

#include <doctest/doctest.h>

#include <cfloat>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "numerics/gaussian_oracle.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/activations.hpp"

using namespace widelimit;
using namespace widelimit::numerics;

namespace {

struct Case {
  std::string name;
  ActivationPtr activation;
};

std::vector<Case> smooth_activations() {
  return {{"tanh", numerics::tanh()}, {"sigmoid", sigmoid()}, {"silu", silu()}, {"softplus", softplus()}};
}

/// A function by quadrature beside the same function in closed form.
struct Twin {
  std::string name;
  ActivationPtr quadrature;
  ActivationPtr closed;
};

Twin twin(std::string name, ActivationPtr closed, std::vector<double> breakpoints = {}) {
  auto value = [closed](double x) { return closed->value(x); };
  auto derivative = [closed](double x) { return closed->derivative(x); };
  return {std::move(name), quadrature_activation(value, derivative, {std::move(breakpoints)}), closed};
}

const std::vector<Twin>& twins() {
  static const std::vector<Twin> all = {twin("relu", relu(), {0}),
                                        twin("abs", numerics::abs(), {0}),
                                        twin("sign", sign(), {0}),
                                        twin("step", rectified_monomial(0), {0}),
                                        twin("rectified square", rectified_monomial(2), {0}),
                                        twin("erf", erf()),
                                        twin("gelu", gelu()),
                                        twin("sin", numerics::sin(1.1, 0.9, 0.3)),
                                        twin("cos", numerics::cos()),
                                        twin("gaussian", gaussian()),
                                        twin("cubic", polynomial({0.1, 1, -0.5, 0.2})),
                                        twin("identity", identity())};
  return all;
}

double value_scale(const Activation& a, double p, double q) {
  return std::sqrt(a.dual(p, p, p).value * a.dual(q, q, q).value);
}

double derivative_scale(const Activation& a, double p, double q) {
  return std::sqrt(a.dual(p, p, p).derivative * a.dual(q, q, q).derivative);
}

// Correlations on both sides of where each truncation of the series gives way to the next and to the nested
// rules.
const std::vector<double> correlations = {0,    0.01,     -0.1,      0.3,      -0.5,      0.7, -0.8, 0.9,
                                          0.97, 1 - 1e-3, -1 + 1e-4, 1 - 1e-7, 1 - 1e-12, 1,   -1};

TEST_CASE("quadrature: agrees with closed forms over twelve orders of variance and all correlations") {
  for (const auto& [name, quadrature, closed] : twins())
    for (const double p : {1e-12, 1e-3, 0.4, 1.0, 6.0, 300.0, 1e4})
      for (const double ratio : {1.0, 0.3})
        for (const double rho : correlations) {
          const double q = ratio * p;
          const double c = rho * std::sqrt(p * q);
          CAPTURE(name);
          CAPTURE(p);
          CAPTURE(q);
          CAPTURE(rho);
          const auto expected = closed->dual(p, q, c);
          const auto actual = quadrature->dual(p, q, c);
          CHECK(std::abs(actual.value - expected.value) <= 1e-10 * value_scale(*closed, p, q));
          CHECK(std::abs(actual.derivative - expected.derivative) <= 1e-10 * derivative_scale(*closed, p, q));
        }
}

TEST_CASE("quadrature: smooth activations are the Gaussian expectations of phi phi and phi' phi'") {
  for (const auto& [name, activation] : smooth_activations()) {
    const auto phi = [&a = *activation](double x) { return a.value(x); };
    const auto slope = [&a = *activation](double x) { return a.derivative(x); };
    struct Pair {
      double p;
      double q;
      double rho;
    };
    for (const auto [p, q, rho] :
         {Pair{1, 1, 0.5}, Pair{0.3, 2, -0.7}, Pair{3, 1e-4, 0.95}, Pair{20, 30, 0.98}, Pair{20, 30, -0.999},
          Pair{4e3, 1e4, 0.6}, Pair{1e4, 1e4, 1 - 1e-6}}) {
      CAPTURE(name);
      CAPTURE(p);
      CAPTURE(q);
      CAPTURE(rho);
      const double c = rho * std::sqrt(p * q);
      const auto [value, derivative] = activation->dual(p, q, c);
      CHECK(std::abs(value - testing::pair_expectation(phi, phi, p, q, c)) <=
            1e-10 * value_scale(*activation, p, q));
      CHECK(std::abs(derivative - testing::pair_expectation(slope, slope, p, q, c)) <=
            1e-10 * derivative_scale(*activation, p, q));
    }
  }
}

}  // namespace
