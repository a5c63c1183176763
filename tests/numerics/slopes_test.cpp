// Slopes of duals against differences of high order of dual(), and the backward passes of rows against them.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "numerics/relative.hpp"
#include "numerics/slope_differences.hpp"
#include "numerics/slope_oracle.hpp"
#include "widelimit/numerics/activations.hpp"
#include "widelimit/numerics/dual_activation.hpp"
#include "widelimit/numerics/quadrature_activation.hpp"
#include "widelimit/numerics/random_stream.hpp"

using namespace widelimit;
using namespace widelimit::numerics;

namespace {

struct SlopeCase {
  std::string name;
  ActivationPtr activation;
};

std::vector<SlopeCase> smooth_forms() {
  return {{"identity", identity()},
          {"erf", erf()},
          {"affine erf", erf(1.2, -0.8, 0, 0.3)},
          {"shifted erf", erf(1.3, 0.7, 0.4, -0.2)},
          {"steep erf", erf(0.9, 3, -2, 0.1)},
          {"sigmoid_like", sigmoid_like()},
          {"gabor", gabor()},
          {"gelu", gelu()},
          {"sin", numerics::sin(0.7, 1.3, 0.4)},
          {"cos", numerics::cos(1.2, -0.8, 2.5)},
          {"rbf", rbf(0.6)},
          {"exponential", exponential(0.5, -0.4)},
          {"gaussian", gaussian(1.1, -0.3)},
          {"growing gaussian", gaussian(1, 0.01)},
          {"polynomial", polynomial({0.3, -1.0, 0.2, 0.15})},
          {"constant", polynomial({2})},
          {"monomial 4", monomial(4)},
          {"hermite 3", hermite(3)},
          {"hermite 4", hermite(4)},
          {"rectified_monomial 5", rectified_monomial(5)}};
}

std::vector<SlopeCase> kinked_forms() {
  return {{"relu", relu()},
          {"leaky_relu", leaky_relu(0.2)},
          {"abs", numerics::abs()},
          {"rectified_monomial 2", rectified_monomial(2)},
          {"rectified_monomial 3", rectified_monomial(3)},
          {"step", rectified_monomial(0)},
          {"sign", sign()}};
}

double jumping(double x) { return x > 0.3 ? 1 + x * x : std::cos(x); }
double jumping_slope(double x) { return x > 0.3 ? 2 * x : -std::sin(x); }

std::vector<SlopeCase> quadratures() {
  return {
      {"tanh", numerics::tanh()},
      {"sigmoid", sigmoid()},
      {"silu", silu()},
      {"softplus", softplus()},
      {"relu by quadrature", quadrature_activation([](double x) { return x > 0 ? x : 0.0; },
                                                   [](double x) { return x > 0 ? 1.0 : 0.0; }, {{0}})},
      {"a jump", quadrature_activation(jumping, jumping_slope, {{0.3}})},
      {"a user's dual", dual_activation([](double p, double q, double c) { return gelu()->dual(p, q, c); })}};
}

std::vector<SlopeCase> joined(std::vector<SlopeCase> first, const std::vector<SlopeCase>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

struct VariancePair {
  double p, q, c;
};

/// Variances over three decades and correlations between -0.95 and 0.95.
std::vector<VariancePair> random_pairs(std::size_t count, std::uint64_t seed) {
  RandomStream random(seed);
  std::vector<VariancePair> pairs;
  for (std::size_t i = 0; i < count; ++i) {
    const double p = std::exp(3 * random.uniform() - 1.5), q = std::exp(3 * random.uniform() - 1.5);
    pairs.push_back({p, q, (1.9 * random.uniform() - 0.95) * std::sqrt(p * q)});
  }
  return pairs;
}

/// Sizes of value and derivative, the variances being p and q.
Dual<double> sizes(const Activation& activation, double p, double q) {
  const Dual<double> left = activation.dual(p, p, p), right = activation.dual(q, q, q);
  return {std::sqrt(left.value * right.value), std::sqrt(left.derivative * right.derivative)};
}

void check_close(const Dual<double>& slope, const Dual<double>& expected, const Dual<double>& size,
                 double length, double tolerance) {
  CHECK(std::abs(slope.value - expected.value) <= tolerance * size.value / length);
  CHECK(std::abs(slope.derivative - expected.derivative) <= tolerance * size.derivative / length);
}

void check_slopes(const Activation& activation, const VariancePair& pair, const DualSlopes& slopes,
                  const DualSlopes& expected, double tolerance) {
  const auto [p, q, c] = pair;
  CAPTURE(p);
  CAPTURE(q);
  CAPTURE(c);
  const Dual<double> size = sizes(activation, p, q);
  check_close(slopes.dual, activation.dual(p, q, c), size, 1, 1e-11);
  check_close(slopes.left, expected.left, size, p, tolerance);
  check_close(slopes.right, expected.right, size, q, tolerance);
  check_close({slopes.value_in_c, slopes.derivative_in_c}, {expected.value_in_c, expected.derivative_in_c},
              size, std::sqrt(p * q), tolerance);
}

void check_random_slopes(const std::vector<SlopeCase>& cases, double tolerance) {
  for (const auto& [name, activation] : cases) {
    const std::string& tested = name;
    CAPTURE(tested);
    for (const VariancePair& pair : random_pairs(25, 3)) {
      const double gap = 1 - std::abs(pair.c) / std::sqrt(pair.p * pair.q);
      check_slopes(*activation, pair, activation->slopes(pair.p, pair.q, pair.c),
                   testing::difference_slopes(*activation, pair.p, pair.q, pair.c, 0.02 * gap), tolerance);
    }
  }
}

bool all_finite(const DualSlopes& slopes) {
  return std::isfinite(slopes.left.value) && std::isfinite(slopes.left.derivative) &&
         std::isfinite(slopes.right.value) && std::isfinite(slopes.right.derivative) &&
         std::isfinite(slopes.derivative_in_c) && std::isfinite(slopes.value_in_c);
}

TEST_CASE("slopes: closed forms agree with differences of eighth order") {
  check_random_slopes(joined(smooth_forms(), kinked_forms()), 1e-11);
}

TEST_CASE("slopes: quadrature and users' duals agree with differences of eighth order") {
  check_random_slopes(quadratures(), 2e-9);
}

TEST_CASE("slopes: those of one variable with itself agree with differences") {
  for (const auto& [name, activation] : joined(joined(smooth_forms(), kinked_forms()), quadratures())) {
    const std::string& tested = name;
    CAPTURE(tested);
    for (const double p : {0.1, 0.7, 3.0}) {
      const SelfSlopes slopes = activation->self_slopes(p);
      const SelfSlopes expected = testing::difference_self_slopes(*activation, p, 0.02);
      check_close(slopes.dual, expected.dual, expected.dual, 1, 1e-11);
      check_close(slopes.slope, expected.slope, expected.dual, p, 2e-9);
    }
  }
}

// The partial slopes of bounded functions are larger than their sum by
// the variance: added up, they would lose all digits.
TEST_CASE("slopes: along the diagonal they keep their digits at variances of every size") {
  for (const auto& [name, activation] : smooth_forms()) {
    const std::string& tested = name;
    CAPTURE(tested);
    const bool grows = name.find("growing") != std::string::npos || name == "exponential";
    for (int exponent = -30; exponent <= (grows ? 0 : 16); ++exponent) {
      const double p = std::pow(10.0, exponent);
      CAPTURE(p);
      const SelfSlopes slopes = activation->self_slopes(p);
      const SelfSlopes expected = testing::difference_self_slopes(*activation, p, 1.0 / 64);
      // Differences know no more than the rounding of the dual.
      CHECK(std::abs(slopes.slope.value - expected.slope.value) * p <=
            1e-9 * std::abs(expected.slope.value) * p + 1e-13 * std::abs(slopes.dual.value));
      CHECK(std::abs(slopes.slope.derivative - expected.slope.derivative) * p <=
            1e-9 * std::abs(expected.slope.derivative) * p + 1e-13 * std::abs(slopes.dual.derivative));
    }
  }
}

TEST_CASE("slopes: the default by differences is as good as closed forms, at perfect correlation too") {
  for (const auto& [name, activation] : joined(smooth_forms(), kinked_forms())) {
    const std::string& tested = name;
    CAPTURE(tested);
    for (const VariancePair& pair : random_pairs(10, 4))
      check_slopes(*activation, pair, slopes_by_differences(*activation, pair.p, pair.q, pair.c),
                   activation->slopes(pair.p, pair.q, pair.c), 1e-9);
    for (const double p : {0.2, 1.1}) {
      check_close(self_slopes_by_differences(*activation, p).slope, activation->self_slopes(p).slope,
                  activation->dual(p, p, p), p, 1e-9);
      CHECK(all_finite(slopes_by_differences(*activation, p, p, p)));
    }
  }
  for (const auto& [name, activation] : smooth_forms()) {
    const std::string& tested = name;
    CAPTURE(tested);
    for (const VariancePair& pair : {VariancePair{0.8, 0.8, 0.8}, {0.5, 0.5, -0.5}, {0.25, 1, 0.5}})
      check_slopes(*activation, pair, slopes_by_differences(*activation, pair.p, pair.q, pair.c),
                   activation->slopes(pair.p, pair.q, pair.c), 1e-8);
  }
}

TEST_CASE("slopes: near perfect correlation smooth functions come to their slopes there") {
  for (const auto& [name, activation] : smooth_forms()) {
    const std::string& tested = name;
    CAPTURE(tested);
    for (const double sign : {1.0, -1.0})
      for (const double gap : {1e-9, 1e-13})
        check_slopes(*activation, {0.9, 0.9, sign * 0.9 * (1 - gap)},
                     activation->slopes(0.9, 0.9, sign * 0.9 * (1 - gap)),
                     activation->slopes(0.9, 0.9, sign * 0.9), gap < 1e-12 ? 1e-6 : 1e-4);
  }
}

TEST_CASE("slopes: on the diagonal the partial ones add up to the total one") {
  for (const auto& [name, activation] : joined(smooth_forms(), quadratures())) {
    if (name == "a jump" || name == "relu by quadrature") continue;  // infinite ones count as 0
    const std::string& tested = name;
    CAPTURE(tested);
    const double p = 0.6;
    const DualSlopes partial = activation->slopes(p, p, p);
    check_close({partial.left.value + partial.right.value + partial.value_in_c,
                 partial.left.derivative + partial.right.derivative + partial.derivative_in_c},
                activation->self_slopes(p).slope, activation->dual(p, p, p), p, 5e-9);
  }
}

TEST_CASE(
    "slopes: quadrature keeps its digits where no series converges, at perfect correlation and next to it") {
  for (const ActivationPtr& activation : {numerics::tanh(), silu(), softplus(), sigmoid()})
    for (const double p : {3.0, 20.0, 500.0}) {
      CAPTURE(p);
      const DualSlopes partial = activation->slopes(p, p, p);
      check_close({partial.left.value + partial.right.value + partial.value_in_c,
                   partial.left.derivative + partial.right.derivative + partial.derivative_in_c},
                  activation->self_slopes(p).slope, activation->dual(p, p, p), p, 1e-10);
      if (p > 100) continue;  // differences of the dual lose too much
      for (const double rho : {0.97, -0.99})
        check_slopes(*activation, {p, 2 * p, rho * p * std::sqrt(2.0)},
                     activation->slopes(p, 2 * p, rho * p * std::sqrt(2.0)),
                     testing::difference_slopes(*activation, p, 2 * p, rho * p * std::sqrt(2.0),
                                                0.03 * (1 - std::abs(rho))),
                     1e-7);
    }
}

// With p = q = 1 and c = cos(theta): ReLU's derivative has the slope 1 / (2 pi sin(theta)) in c.
TEST_CASE("slopes: ReLU's steep slopes keep their digits up to perfect correlation, where they count as 0") {
  for (const double gap : {1e-3, 1e-7, 1e-12}) {
    const double c = 1 - gap, real_gap = 1 - c, sine = std::sqrt(real_gap * (2 - real_gap));
    const DualSlopes slopes = relu()->slopes(1, 1, c);
    CHECK(slopes.derivative_in_c == testing::relative(1 / (2 * std::numbers::pi * sine), 1e-9));
    CHECK(slopes.left.value == testing::relative(sine / (4 * std::numbers::pi), 1e-9));
    CHECK(slopes.left.derivative == testing::relative(-c / (4 * std::numbers::pi * sine), 1e-9));
    CHECK(sign()->slopes(1, 1, c).value_in_c == testing::relative(2 / (std::numbers::pi * sine), 1e-9));
  }
  for (const auto& [name, activation] : kinked_forms())
    for (const double sign : {1.0, -1.0}) {
      const std::string& tested = name;
      CAPTURE(tested);
      const DualSlopes slopes = activation->slopes(0.7, 0.7, sign * 0.7);
      CHECK(all_finite(slopes));
      if (name.starts_with("rectified")) continue;
      CHECK(slopes.derivative_in_c == 0);
      CHECK(slopes.left.derivative == 0);
    }
  CHECK(sign()->slopes(0.7, 0.7, 0.7).value_in_c == 0);
  CHECK(relu()->slopes(0.7, 0.7, 0.7).value_in_c == 0.5);
  CHECK(relu()->self_slopes(0.7).slope.value == 0.5);
}

TEST_CASE("slopes: never NaN, at variances of 0 and of every size") {
  for (const auto& [name, activation] : joined(joined(smooth_forms(), kinked_forms()), quadratures())) {
    const std::string& tested = name;
    CAPTURE(tested);
    for (const double q : {0.0, 1e-6, 0.7}) {
      CHECK(all_finite(activation->slopes(0, q, 0)));
      CHECK(all_finite(activation->slopes(q, 0, 0)));
      CHECK(std::isfinite(activation->self_slopes(q).slope.value));
      CHECK(std::isfinite(activation->self_slopes(q).slope.derivative));
    }
    for (const double p : {1e-12, 1e-6})
      for (const double rho : {-1.0, -0.3, 0.0, 0.8, 1.0})
        CHECK(all_finite(activation->slopes(p, 2 * p, rho * p * std::sqrt(2.0))));
  }
  for (const double p : {1e20, 1e60})
    for (const ActivationPtr& activation : {erf(), gelu(), relu(), gabor(), rbf(), gaussian(), sign()})
      for (const double rho : {-0.9, 0.3, 1.0}) {
        const DualSlopes slopes = activation->slopes(p, p, rho * p);
        CHECK(all_finite(slopes));
      }
  // GELU over a huge variance is ReLU.
  CHECK(gelu()->slopes(1e12, 1e12, 3e11).left.value ==
        testing::relative(relu()->slopes(1e12, 1e12, 3e11).left.value, 1e-10));
  CHECK(gelu()->slopes(1e12, 1e12, 3e11).derivative_in_c ==
        testing::relative(relu()->slopes(1e12, 1e12, 3e11).derivative_in_c, 1e-10));
}

TEST_CASE("slopes: closed forms know those at a variance of 0") {
  // E[phi''(0) phi(v)] / 2 with phi''(0) = 2 / sqrt(2 pi) and E[v P(v)] = q / sqrt(2 pi (1 + q)).
  const double q = 0.8;
  CHECK(gelu()->slopes(0, q, 0).left.value ==
        testing::relative(q / (2 * std::numbers::pi * std::sqrt(1 + q)), 1e-14));
  CHECK(exponential()->slopes(0, 0, 0).left.value == testing::relative(0.5, 1e-15));
  CHECK(monomial(2)->slopes(0, q, 0).left.value == testing::relative(q, 1e-15));
  CHECK(relu()->slopes(0, q, 0).right.value == 0);
  CHECK(relu()->self_slopes(0).slope.value == 0.5);
}

/// A row through prepare() and apply_adjoint() of an activation.
template <typename Scalar>
struct AdjointNumbers {
  std::vector<Scalar> p, q, c, ntk, nngp_adjoint, ntk_adjoint, left_adjoint, right_adjoint;

  explicit AdjointNumbers(const std::vector<VariancePair>& pairs) {
    RandomStream random(11);
    for (const VariancePair& pair : pairs) {
      p.push_back(static_cast<Scalar>(pair.p));
      q.push_back(static_cast<Scalar>(pair.q));
      c.push_back(static_cast<Scalar>(pair.c));
      ntk.push_back(static_cast<Scalar>(random.normal()));
      nngp_adjoint.push_back(static_cast<Scalar>(random.normal()));
      ntk_adjoint.push_back(static_cast<Scalar>(random.normal()));
    }
    left_adjoint.assign(p.size(), Scalar(7));
    right_adjoint.assign(p.size(), Scalar(7));
  }

  void backward_pass(const Activation& activation, bool with_ntk) {
    const std::size_t count = activation.auxiliary_count(), size = p.size();
    std::vector<Scalar> numbers(2 * count * size);
    std::vector<Scalar*> left, right;
    for (std::size_t k = 0; k < count; ++k) {
      left.push_back(numbers.data() + k * size);
      right.push_back(numbers.data() + (count + k) * size);
    }
    activation.prepare(p.data(), left.data(), size);
    activation.prepare(q.data(), right.data(), size);
    activation.apply_adjoint(AdjointRow<Scalar>{c.data(), with_ntk ? ntk.data() : nullptr, p.data(), q.data(),
                                                left.data(), right.data(), nngp_adjoint.data(),
                                                with_ntk ? ntk_adjoint.data() : nullptr, left_adjoint.data(),
                                                right_adjoint.data(), size});
  }
};

TEST_CASE_TEMPLATE("slopes: rows go back by them", Scalar, float, double) {
  const double tolerance = sizeof(Scalar) == 4 ? 3e-5 : 1e-11;
  for (const auto& [name, activation] : joined(joined(smooth_forms(), kinked_forms()), quadratures()))
    for (const bool with_ntk : {true, false}) {
      const std::string& tested = name;
      CAPTURE(tested);
      const AdjointNumbers<Scalar> before(random_pairs(37, 5));
      AdjointNumbers<Scalar> after = before;
      after.backward_pass(*activation, with_ntk);
      for (std::size_t i = 0; i < before.p.size(); ++i) {
        const auto wide = [](Scalar x) { return static_cast<double>(x); };
        const double p = wide(before.p[i]), q = wide(before.q[i]), c = wide(before.c[i]);
        const double nngp = wide(before.nngp_adjoint[i]), ntk = with_ntk ? wide(before.ntk_adjoint[i]) : 0;
        const double product = ntk * wide(before.ntk[i]);
        const DualSlopes slopes = activation->slopes(p, q, c);
        const Dual<double> size = sizes(*activation, p, q);
        const double scale = std::abs(nngp) * size.value + std::abs(product) * size.derivative;
        CHECK(std::abs(wide(after.nngp_adjoint[i]) -
                       (nngp * slopes.value_in_c + product * slopes.derivative_in_c)) <=
              tolerance * scale / std::sqrt(p * q));
        CHECK(std::abs(wide(after.left_adjoint[i]) -
                       (nngp * slopes.left.value + product * slopes.left.derivative)) <=
              tolerance * scale / p);
        CHECK(std::abs(wide(after.right_adjoint[i]) -
                       (nngp * slopes.right.value + product * slopes.right.derivative)) <=
              tolerance * scale / q);
        CHECK(std::abs(wide(after.ntk_adjoint[i]) -
                       (with_ntk ? ntk * slopes.dual.derivative : wide(before.ntk_adjoint[i]))) <=
              tolerance * (std::abs(ntk) * size.derivative));
      }
    }
}

TEST_CASE_TEMPLATE("slopes: no entry of a row depends on its neighbours, out of range of the vectors or not",
                   Scalar, float, double) {
  std::vector<VariancePair> pairs = random_pairs(9, 6);
  const double far = sizeof(Scalar) == 4 ? 1e25 : 1e170;
  pairs[4] = {far, 2 * far, 0.3 * far};
  for (const auto& [name, activation] : smooth_forms()) {
    if (name == "growing gaussian") continue;  // Without a value there.
    const std::string& tested = name;
    CAPTURE(tested);
    AdjointNumbers<Scalar> all(pairs);
    const AdjointNumbers<Scalar> before = all;
    all.backward_pass(*activation, true);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (i == 4) continue;  // Of some forms nothing is finite there.
      AdjointNumbers<Scalar> alone({pairs[i]});
      alone.ntk[0] = before.ntk[i];
      alone.nngp_adjoint[0] = before.nngp_adjoint[i];
      alone.ntk_adjoint[0] = before.ntk_adjoint[i];
      alone.backward_pass(*activation, true);
      CHECK(alone.nngp_adjoint[0] == all.nngp_adjoint[i]);
      CHECK(alone.ntk_adjoint[0] == all.ntk_adjoint[i]);
      CHECK(alone.left_adjoint[0] == all.left_adjoint[i]);
      CHECK(alone.right_adjoint[0] == all.right_adjoint[i]);
    }
  }
}

}  // namespace
