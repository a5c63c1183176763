#include "widelimit/numerics/quadrature_activation.hpp"

#include <doctest/doctest.h>

#include <cfloat>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "numerics/gaussian_oracle.hpp"
#include "numerics/relative.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/activations.hpp"

using namespace widelimit;
using namespace widelimit::numerics;

namespace {

struct SmoothCase {
  std::string name;
  ActivationPtr activation;
};

std::vector<SmoothCase> smooth_activations() {
  return {{"tanh", numerics::tanh()}, {"sigmoid", sigmoid()}, {"silu", silu()}, {"softplus", softplus()}};
}

/// A function by quadrature beside the same function in closed form.
struct Twin {
  std::string name;
  ActivationPtr quadrature;
  ActivationPtr closed;
};

Twin twin(std::string name, const ActivationPtr& closed, std::vector<double> breakpoints = {}) {
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

double smooth_derivative_scale(const Activation& a, double p, double q) {
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
          const std::string& tested = name;
          CAPTURE(tested);
          CAPTURE(p);
          CAPTURE(q);
          CAPTURE(rho);
          const auto expected = closed->dual(p, q, c);
          const auto actual = quadrature->dual(p, q, c);
          // Closed forms of functions that jump take the rounding of c for
          // perfect correlation, whose angle quadrature sees.
          const bool jumps = name == "sign" || name == "step";
          constexpr double angle_of_rounding = 3e-8;  // sqrt(4 epsilon)
          const double of_rounding = jumps && std::abs(rho) == 1 ? angle_of_rounding : 0;
          CHECK(std::abs(actual.value - expected.value) <=
                (1e-10 + of_rounding) * value_scale(*closed, p, q));
          CHECK(std::abs(actual.derivative - expected.derivative) <=
                1e-10 * smooth_derivative_scale(*closed, p, q));
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
    for (const Pair& pair : {Pair{1, 1, 0.5}, Pair{0.3, 2, -0.7}, Pair{3, 1e-4, 0.95}, Pair{20, 30, 0.98},
                             Pair{20, 30, -0.999}, Pair{4e3, 1e4, 0.6}, Pair{1e4, 1e4, 1 - 1e-6}}) {
      const double p = pair.p;
      const double q = pair.q;
      const double rho = pair.rho;
      const std::string& tested = name;
      CAPTURE(tested);
      CAPTURE(p);
      CAPTURE(q);
      CAPTURE(rho);
      const double c = rho * std::sqrt(p * q);
      const auto [value, derivative] = activation->dual(p, q, c);
      CHECK(std::abs(value - testing::pair_expectation(phi, phi, p, q, c)) <=
            1e-10 * value_scale(*activation, p, q));
      CHECK(std::abs(derivative - testing::pair_expectation(slope, slope, p, q, c)) <=
            1e-10 * smooth_derivative_scale(*activation, p, q));
    }
  }
}

double normal_tail(double x) { return std::erfc(x / std::numbers::sqrt2) / 2; }

// A step and a ramp at b: given u, v is Gaussian with mean (c/p) u, so that one integral over u > b is left.
TEST_CASE("quadrature: a kink and a jump away from 0") {
  constexpr double b = 0.8;
  const auto ramp = quadrature_activation([](double x) { return std::max(x - b, 0.0); },
                                          [](double x) { return x < b ? 0.0 : 1.0; }, {{b}});
  const auto step =
      quadrature_activation([](double x) { return x < b ? 0.0 : 1.0; }, [](double) { return 0.0; }, {{b}});
  using Rule = boost::math::quadrature::gauss_kronrod<double, 61>;
  for (const double p : {0.05, 1.0, 1.7, 40.0})
    for (const double rho : {-0.9, 0.2, 0.6, 0.93, 0.9999}) {
      CAPTURE(p);
      CAPTURE(rho);
      const double q = 1.3 * p;
      const double c = rho * std::sqrt(p * q);
      const double rest = std::sqrt(q * (1 - rho * rho));
      const auto mean_over_u = [&](auto&& given_u) {
        const auto density = [&](double u) { return std::exp(-u * u / (2 * p)) * given_u(u, c / p * u); };
        const double reach = b + 13 * std::sqrt(p);
        return Rule::integrate(density, b, reach, 15, 1e-13) / std::sqrt(2 * std::numbers::pi * p);
      };
      const double both_above =
          mean_over_u([&](double, double mean) { return normal_tail((b - mean) / rest); });
      const double both_ramps = mean_over_u([&](double u, double mean) {
        const double z = (mean - b) / rest;
        const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
        return (u - b) * rest * (z * normal_tail(-z) + density);
      });
      CHECK(std::abs(ramp->dual(p, q, c).value - both_ramps) <= 1e-10 * value_scale(*ramp, p, q));
      CHECK(std::abs(ramp->dual(p, q, c).derivative - both_above) <=
            1e-10 * smooth_derivative_scale(*ramp, p, q));
      CHECK(std::abs(step->dual(p, q, c).value - both_above) <= 1e-10 * value_scale(*step, p, q));
      CHECK(step->dual(p, q, c).derivative == 0);
    }
}

TEST_CASE("quadrature: Price's theorem") {
  for (const auto& [name, activation] : smooth_activations())
    for (const double rho : {-0.9, 0.0, 0.5, 0.97}) {
      const std::string& tested = name;
      CAPTURE(tested);
      CAPTURE(rho);
      const double h = 1e-5;
      const double c = 2.4 * rho;
      const double rise = activation->dual(2, 2.88, c + h).value - activation->dual(2, 2.88, c - h).value;
      CHECK(activation->dual(2, 2.88, c).derivative == testing::relative(rise / (2 * h), 1e-8));
    }
}

TEST_CASE("quadrature: symmetric in the pair") {
  for (const auto& [name, activation] : smooth_activations())
    for (const double c : {-0.9, 0.1, 12.0}) {
      const std::string& tested = name;
      CAPTURE(tested);
      const auto one = activation->dual(2, 100, c);
      const auto other = activation->dual(100, 2, c);
      CHECK(one.value == testing::relative(other.value, 1e-12));
      CHECK(one.derivative == testing::relative(other.derivative, 1e-12));
    }
}

TEST_CASE("quadrature: a zero variance is the constant 0") {
  for (const auto& [name, activation] : smooth_activations()) {
    const std::string& tested = name;
    CAPTURE(tested);
    const auto phi = [&a = *activation](double x) { return a.value(x); };
    const double at_zero = activation->value(0);
    CHECK(activation->dual(0, 0, 0).value == testing::relative(at_zero * at_zero, 1e-14));
    for (const double q : {1e-6, 0.7, 1e4}) {
      const double expected = at_zero * testing::gaussian_mean(phi, q);
      CHECK(std::abs(activation->dual(0, q, 0).value - expected) <= 1e-12 * std::abs(expected));
      CHECK(std::abs(activation->dual(q, 0, 0).value - expected) <= 1e-12 * std::abs(expected));
      CHECK(std::isfinite(activation->dual(0, q, 0).derivative));
    }
  }
}

TEST_CASE("quadrature: perfect correlation is the mean square, also past the bound by rounding") {
  for (const auto& [name, activation] : smooth_activations())
    for (const double p : {1e-15, 1e-6, 1.0, 3.0, 7.0, 60.0, 1e4}) {
      const std::string& tested = name;
      CAPTURE(tested);
      CAPTURE(p);
      const auto square = [&a = *activation](double x) { return a.value(x) * a.value(x); };
      const auto exact = activation->dual(p, p, p);
      CHECK(exact.value == testing::relative(testing::gaussian_mean(square, p), 1e-11));
      const auto past = activation->dual(p, p, p * (1 + 4 * DBL_EPSILON));
      CHECK(past.value == testing::relative(exact.value, 1e-12));
      CHECK(past.derivative == testing::relative(exact.derivative, 1e-12));
    }
}

TEST_CASE("quadrature: near-perfect correlation approaches it with the slope that Price gives") {
  for (const auto& [name, activation] : smooth_activations())
    for (const double p : {0.5, 3.0, 9.0, 200.0})
      for (const double gap : {1e-7, 1e-12}) {
        const std::string& tested = name;
        CAPTURE(tested);
        CAPTURE(p);
        const auto exact = activation->dual(p, p, p);
        const auto near = activation->dual(p, p, p - p * gap);
        // Second order: (p gap)^2 / 2 E[phi''^2], and E[phi''^2] < 1 for all four.
        CHECK(std::abs(near.value - (exact.value - p * gap * exact.derivative)) <=
              p * p * gap * gap + 1e-11 * exact.value);
        CHECK(std::abs(near.derivative - exact.derivative) <= p * gap + 1e-11 * exact.derivative);
      }
}

TEST_CASE("quadrature: tiny and huge inputs in one batch keep relative accuracy") {
  for (const double p : {1e-12, 1e-20}) {
    // phi is its tangent there: E phi phi = phi'(0)^2 c for tanh, up to O(p); sigmoid and softplus keep
    // phi(0)^2.
    const double c = 0.4 * p;
    CHECK(numerics::tanh()->dual(p, p, c).value == testing::relative(c, 1e-10));
    CHECK(silu()->dual(p, p, c).value == testing::relative(c / 4, 1e-10));
    CHECK(sigmoid()->dual(p, p, c).value == testing::relative(0.25, 1e-10));
  }
  // Over a huge variance tanh is sign, SiLU and softplus are ReLU, up to O(1 / sqrt(p)).
  const double p = 1e14;
  CHECK(numerics::tanh()->dual(p, p, 0.3 * p).value ==
        testing::relative(sign()->dual(p, p, 0.3 * p).value, 1e-6));
  CHECK(silu()->dual(p, p, 0.95 * p).value == testing::relative(relu()->dual(p, p, 0.95 * p).value, 1e-6));
  CHECK(softplus()->dual(p, p, -0.5 * p).value ==
        testing::relative(relu()->dual(p, p, -0.5 * p).value, 1e-6));
  // 1 - tanh^2 = sech^2 has integral 2: E tanh(u)^2 = 1 - 2 / sqrt(2 pi p) up to O(1 / p).
  CHECK(1 - numerics::tanh()->dual(p, p, p).value ==
        testing::relative(2 / std::sqrt(2 * std::numbers::pi * p), 1e-6));
  // tanh of a tiny and of a huge input: E[u sign(v)] = c sqrt(2 / (pi q)).
  CHECK(numerics::tanh()->dual(1e-12, 1e12, 0.5).value ==
        testing::relative(0.5 * std::sqrt(2 / (std::numbers::pi * 1e12)), 1e-6));
}

TEST_CASE("quadrature: rows agree with entries, in float to float precision") {
  const std::vector<double> p = {0, 0.3, 1e-6, 2, 1, 9, 40, 1, 5};
  const std::vector<double> q = {1, 0.3, 4, 0, 1, 9, 50, 2, 5};
  const std::vector<double> rho = {0, 1, 0.3, 0, -0.999, 0.99, 0.995, 0.2, 1};
  const std::size_t size = 71;  // blocks of 32 and a rest
  for (const auto& [name, activation] : smooth_activations()) {
    const std::string& tested = name;
    CAPTURE(tested);
    const auto run = [&, &activation = activation]<typename Scalar>(Scalar, double tolerance) {
      const std::size_t count = activation->auxiliary_count();
      std::vector<Scalar> left(count * size);
      std::vector<Scalar> right(count * size);
      std::vector<Scalar*> left_rows;
      std::vector<Scalar*> right_rows;
      for (std::size_t k = 0; k < count; ++k) {
        left_rows.push_back(left.data() + k * size);
        right_rows.push_back(right.data() + k * size);
      }
      std::vector<Scalar> p_row;
      std::vector<Scalar> q_row;
      std::vector<Scalar> nngp;
      for (std::size_t i = 0; i < size; ++i) {
        const std::size_t j = i % p.size();
        p_row.push_back(static_cast<Scalar>(p[j]));
        q_row.push_back(static_cast<Scalar>(q[j]));
        nngp.push_back(static_cast<Scalar>(rho[j] * std::sqrt(p[j] * q[j])));
      }
      const std::vector<Scalar> covariance = nngp;
      std::vector<Scalar> nngp_only = nngp;
      std::vector<Scalar> ntk(size, Scalar{3});
      activation->prepare(p_row.data(), left_rows.data(), size);
      activation->prepare(q_row.data(), right_rows.data(), size);
      activation->apply(DualRow<Scalar>{nngp.data(), ntk.data(), left_rows.data(), right_rows.data(), size});
      activation->apply(
          DualRow<Scalar>{nngp_only.data(), nullptr, left_rows.data(), right_rows.data(), size});
      for (std::size_t i = 0; i < size; ++i) {
        CAPTURE(i);
        const auto p_i = static_cast<double>(p_row[i]);
        const auto q_i = static_cast<double>(q_row[i]);
        const auto [value, derivative] = activation->dual(p_i, q_i, static_cast<double>(covariance[i]));
        CHECK(std::abs(static_cast<double>(nngp[i]) - value) <=
              tolerance * value_scale(*activation, p_i, q_i));
        CHECK(std::abs(static_cast<double>(ntk[i]) - 3 * derivative) <=
              3 * tolerance * smooth_derivative_scale(*activation, p_i, q_i));
        CHECK(nngp_only[i] == nngp[i]);
      }
    };
    run(double{}, 2e-11);
    run(float{}, 2e-6);
  }
}

TEST_CASE("quadrature: the error estimate covers the error") {
  const auto erf_twin = std::dynamic_pointer_cast<const QuadratureActivation>(twins()[5].quadrature);
  REQUIRE(erf_twin);
  for (const double p : {0.5, 4.0, 900.0})
    for (const double rho : {0.3, 0.99}) {
      const auto [dual, error] = erf_twin->estimate(p, p, rho * p);
      const auto exact = erf()->dual(p, p, rho * p);
      CHECK(std::abs(dual.value - exact.value) <= error.value + 1e-14 * exact.value);
      CHECK(std::abs(dual.derivative - exact.derivative) <= error.derivative + 1e-14 * exact.derivative);
      CHECK(error.value <= 1e-6);
    }
}

// The series and the nested rules share no step but phi: estimate() is their difference, or that of the
// nested rules with 15 and with 10 Gauss points, and the latter is of order 1e-8 where a mesh panel is just
// resolved.
TEST_CASE("quadrature: series and nested rules agree") {
  for (const auto& [name, activation] : smooth_activations()) {
    const auto quadrature = std::dynamic_pointer_cast<const QuadratureActivation>(activation);
    REQUIRE(quadrature);
    for (const double p : {1e-9, 0.2, 0.5, 1.0, 2.0, 3.5, 8.0, 20.0})
      for (const double rho : {-0.9, 0.0, 0.2, 0.5, 0.9}) {
        const std::string& tested = name;
        CAPTURE(tested);
        CAPTURE(p);
        CAPTURE(rho);
        const auto [dual, error] = quadrature->estimate(p, 0.7 * p, rho * p * std::sqrt(0.7));
        CHECK(error.value <= 5e-8 * value_scale(*activation, p, 0.7 * p));
        CHECK(error.derivative <= 5e-8 * smooth_derivative_scale(*activation, p, 0.7 * p));
      }
  }
}

TEST_CASE(
    "quadrature: a function with a feature narrower than its distance from 0 needs no hint if it is wide "
    "enough") {
  // exp(-(x - 3)^2 / (2 w^2)): E phi(u) phi(v) is the density of (u + w x, v + w y) at (3, 3) times 2 pi w^2.
  constexpr double width = 0.3;
  const auto bump = quadrature_activation(
      [](double x) { return std::exp(-(x - 3) * (x - 3) / (2 * width * width)); },
      [](double x) {
        return -(x - 3) / (width * width) * std::exp(-(x - 3) * (x - 3) / (2 * width * width));
      });
  for (const double p : {0.5, 4.0, 100.0})
    for (const double rho : {-0.5, 0.4, 0.9, 0.9999}) {
      CAPTURE(p);
      CAPTURE(rho);
      const double wide = p + width * width;
      const double c = rho * p;
      const double exact = width * width / std::sqrt((wide - c) * (wide + c)) * std::exp(-9 / (wide + c));
      CHECK(std::abs(bump->dual(p, p, c).value - exact) <= 1e-10 * value_scale(*bump, p, p));
    }
}

}  // namespace

TEST_CASE("phi alone: its derivative is found by differences") {
  const auto shrink = [](double x) { return x > 0.5 ? x - 0.5 : x < -0.5 ? x + 0.5 : 0.0; };
  const auto shrink_slope = [](double x) { return x >= 0.5 || x < -0.5 ? 1.0 : 0.0; };
  const QuadratureOptions kinks{.breakpoints = {-0.5, 0.5}};
  const auto tanh_of = [](double x) { return std::tanh(x); };
  const auto tanh_slope = [](double x) { return 1 - std::tanh(x) * std::tanh(x); };
  using Pointer = std::shared_ptr<const QuadratureActivation>;
  const std::vector<std::pair<Pointer, Pointer>> twins{
      {quadrature_activation(tanh_of), quadrature_activation(tanh_of, tanh_slope)},
      {quadrature_activation(shrink, kinks), quadrature_activation(shrink, shrink_slope, kinks)}};
  for (const auto& [alone, known] : twins) {
    CHECK(alone->derivative(0.7) == doctest::Approx(known->derivative(0.7)).epsilon(1e-10));
    for (const double c : {-0.6, 0.3, 1.1, 1.29}) {
      const auto left = alone->dual(1.3, 1.3, c), right = known->dual(1.3, 1.3, c);
      CHECK(std::abs(left.value - right.value) < 1e-10);
      CHECK(std::abs(left.derivative - right.derivative) < 1e-9);
    }
  }
  CHECK_THROWS_WITH_AS(static_cast<void>(quadrature_activation(nullptr)),
                       "quadrature_activation: phi must be callable, got an empty function", ArgumentError);
}
