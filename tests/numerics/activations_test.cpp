#include "widelimit/numerics/activations.hpp"

#include <doctest/doctest.h>

#include <cfloat>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "numerics/gaussian_oracle.hpp"
#include "numerics/relative.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/quadrature_activation.hpp"

using namespace widelimit;
using namespace widelimit::numerics;

namespace {

enum class Jump { None, AtZero };

struct Case {
  std::string name;
  ActivationPtr activation;
  Jump jump = Jump::None;  ///< with a jump the derivative dual is 0 by convention, not Price's
};

std::vector<Case> closed_forms() {
  return {{"identity", identity()},
          {"relu", relu()},
          {"leaky_relu", leaky_relu(0.2)},
          {"abs", abs()},
          {"homogeneous", homogeneous(-0.3, 1.7)},
          {"step", rectified_monomial(0), Jump::AtZero},
          {"rectified_monomial 2", rectified_monomial(2)},
          {"rectified_monomial 3", rectified_monomial(3)},
          {"rectified_monomial 5", rectified_monomial(5)},
          {"sign", sign(), Jump::AtZero},
          {"erf", erf()},
          {"affine erf", erf(1.2, -0.8, 0, 0.3)},
          {"constant erf", erf(1.2, 0, 0.7, 0.3)},
          {"sigmoid_like", sigmoid_like()},
          {"gabor", gabor()},
          {"monomial 4", monomial(4)},
          {"gelu", gelu()},
          {"sin", numerics::sin(0.7, 1.3, 0.4)},
          {"sin without phase", numerics::sin()},
          {"sin at its top", numerics::sin(1, 0.9, std::numbers::pi / 2)},
          {"cos", numerics::cos(1.2, -0.8, 2.5)},
          {"cos without phase", numerics::cos()},
          {"rbf", rbf(0.6)},
          {"exponential", exponential(0.5, -0.4)},
          {"gaussian", gaussian(1.1, -0.3)},
          {"growing gaussian", gaussian(1, 0.02)},
          {"polynomial", polynomial({0.3, -1.0, 0.2, 0.15})},
          {"constant", polynomial({2})},
          {"hermite 0", hermite(0)},
          {"hermite 3", hermite(3)},
          {"hermite 4", hermite(4)}};
}

struct Pair {
  double p;
  double q;
  double c;
};

/// Root mean square of phi, the scale that errors of a dual are relative to.
double scale(const Activation& activation, double p, double q) {
  return std::sqrt(activation.dual(p, p, p).value * activation.dual(q, q, q).value);
}

/// At a kink a zero variance has no mean square slope; that of a tiny variance stands for it.
double derivative_scale(const Activation& activation, double p, double q) {
  p = std::max(p, 1e-12);
  q = std::max(q, 1e-12);
  return std::sqrt(activation.dual(p, p, p).derivative * activation.dual(q, q, q).derivative);
}

TEST_CASE("closed forms: value and derivative are the Gaussian expectations of phi phi and phi' phi'") {
  for (const auto& [name, activation, jump] : closed_forms()) {
    const auto phi = [&a = *activation](double x) { return a.value(x); };
    const auto slope = [&a = *activation](double x) { return a.derivative(x); };
    for (const Pair& pair :
         {Pair{1.3, 2.1, 0.9}, Pair{1.3, 2.1, -1.1}, Pair{0.4, 0.4, 0.39}, Pair{0.02, 3.0, 0.0}}) {
      const double p = pair.p;
      const double q = pair.q;
      const double c = pair.c;
      const std::string& tested = name;
      CAPTURE(tested);
      CAPTURE(p);
      CAPTURE(c);
      const auto [value, derivative] = activation->dual(p, q, c);
      CHECK(std::abs(value - testing::pair_expectation(phi, phi, p, q, c)) <=
            1e-11 * testing::gaussian_mean([&](double x) { return phi(x) * phi(x); }, std::max(p, q)));
      if (jump == Jump::AtZero) {
        CHECK(derivative == 0);
        continue;
      }
      CHECK(std::abs(derivative - testing::pair_expectation(slope, slope, p, q, c)) <=
            1e-11 * (1e-3 +
                     testing::gaussian_mean([&](double x) { return slope(x) * slope(x); }, std::max(p, q))));
    }
  }
}

TEST_CASE("erf with a shift: the Gaussian expectations, steep and far from 0 too") {
  for (const auto& activation : {erf(1.3, 0.7, 0.4, -0.2), erf(0.9, 3, -30, 0.1)}) {
    const auto phi = [&](double x) { return activation->value(x); };
    const auto slope = [&](double x) { return activation->derivative(x); };
    for (const Pair& pair : {Pair{1.3, 2.1, 0.9}, Pair{30, 40, -20}}) {
      const auto [value, derivative] = activation->dual(pair.p, pair.q, pair.c);
      CHECK(std::abs(value - testing::pair_expectation(phi, phi, pair.p, pair.q, pair.c)) < 1e-9);
      CHECK(std::abs(derivative - testing::pair_expectation(slope, slope, pair.p, pair.q, pair.c)) < 1e-9);
    }
  }
  CHECK(erf(2, 1, 0.5)->value(-0.5) == 0);
}

TEST_CASE("closed forms: phi' is the slope of phi, the derivative dual the slope of the value (Price)") {
  for (const auto& [name, activation, jump] : closed_forms()) {
    const std::string& tested = name;
    CAPTURE(tested);
    for (const double x : {-1.7, -0.4, 0.3, 2.2}) {
      const double h = 1e-5;
      const double rise = activation->value(x + h) - activation->value(x - h);
      CHECK(activation->derivative(x) == doctest::Approx(rise / (2 * h)).epsilon(1e-7).scale(10));
    }
    if (jump == Jump::AtZero) continue;
    for (const double c : {-1.0, -0.2, 0.0, 0.6, 1.2}) {
      const double h = 1e-5;
      const double rise = activation->dual(1.1, 1.9, c + h).value - activation->dual(1.1, 1.9, c - h).value;
      CHECK(activation->dual(1.1, 1.9, c).derivative ==
            doctest::Approx(rise / (2 * h)).epsilon(1e-8).scale(100));
    }
  }
}

TEST_CASE("closed forms: symmetric in the pair") {
  for (const auto& [name, activation, jump] : closed_forms()) {
    const std::string& tested = name;
    CAPTURE(tested);
    for (const double c : {-0.7, 0.2, 0.8}) {
      const auto one = activation->dual(0.6, 1.4, c);
      const auto other = activation->dual(1.4, 0.6, c);
      CHECK(one.value == testing::relative(other.value, 1e-14));
      CHECK(one.derivative == testing::relative(other.derivative, 1e-14));
    }
  }
}

/// E[phi'(v)] phi'(0) in the rows of float and double, from an incoming NTK of 1.
template <typename Scalar>
Scalar derivative_in_rows(const Activation& activation, double p, double q) {
  const auto count = activation.auxiliary_count();
  std::vector<Scalar> left(count), right(count);
  std::vector<Scalar*> on_left, on_right;
  for (std::size_t k = 0; k < count; ++k) {
    on_left.push_back(&left[k]);
    on_right.push_back(&right[k]);
  }
  const auto narrow_p = static_cast<Scalar>(p), narrow_q = static_cast<Scalar>(q);
  activation.prepare(&narrow_p, on_left.data(), 1);
  activation.prepare(&narrow_q, on_right.data(), 1);
  Scalar nngp = 0, ntk = 1;
  activation.apply(DualRow<Scalar>{&nngp, &ntk, on_left.data(), on_right.data(), 1});
  return ntk;
}

TEST_CASE(
    "closed forms and quadrature: a zero variance has the derivative phi'(0), at a kink the mean of both "
    "sides") {
  std::vector<Case> cases = closed_forms();
  cases.push_back({"tanh", numerics::tanh()});
  cases.push_back({"silu", silu()});
  cases.push_back({"exponential unit",
                   quadrature_activation([](double x) { return x < 0 ? std::expm1(2 * x) : x; },
                                         [](double x) { return x < 0 ? 2 * std::exp(2 * x) : 1.0; })});
  cases.push_back({"ReLU by quadrature", quadrature_activation([](double x) { return x > 0 ? x : 0; },
                                                               [](double x) { return x >= 0 ? 1.0 : 0.0; })});
  for (const auto& [name, activation, jump] : cases) {
    const std::string& tested = name;
    CAPTURE(tested);
    const auto slope = [&a = *activation](double x) { return a.derivative(x); };
    const double sides = (activation->derivative(-1e-9) + activation->derivative(1e-9)) / 2;
    CHECK(std::abs(activation->derivative(0) - sides) <= 1e-6);
    for (const double q : {0.0, 1e-6, 0.7, 3.0}) {
      CAPTURE(q);
      const double size = 1 + testing::gaussian_mean([&](double x) { return slope(x) * slope(x); }, q);
      const double expected = slope(0) * (q > 0 ? testing::gaussian_mean(slope, q) : slope(0));
      for (const auto& [left, right] : {std::pair{0.0, q}, std::pair{q, 0.0}}) {
        CHECK(std::abs(activation->dual(left, right, 0).derivative - expected) <= 1e-8 * size);
        CHECK(std::abs(derivative_in_rows<double>(*activation, left, right) - expected) <= 1e-8 * size);
        CHECK(std::abs(static_cast<double>(derivative_in_rows<float>(*activation, left, right)) - expected) <=
              1e-6 * size);
        CHECK(activation->slopes(left, right, 0).dual.derivative ==
              doctest::Approx(activation->dual(left, right, 0).derivative));
      }
    }
  }
}

TEST_CASE("closed forms: a zero variance is the constant 0") {
  for (const auto& [name, activation, jump] : closed_forms()) {
    const std::string& tested = name;
    CAPTURE(tested);
    const auto phi = [&a = *activation](double x) { return a.value(x); };
    const double at_zero = activation->value(0);
    CHECK(activation->dual(0, 0, 0).value == testing::relative(at_zero * at_zero, 1e-14));
    for (const double q : {1e-6, 0.7, 3.0}) {
      const double expected = at_zero * testing::gaussian_mean(phi, q);
      CHECK(activation->dual(0, q, 0).value == testing::relative(expected, 1e-12));
      CHECK(activation->dual(q, 0, 0).value == testing::relative(expected, 1e-12));
      CHECK(std::isfinite(activation->dual(0, q, 0).derivative));
    }
  }
}

TEST_CASE("closed forms: perfect correlation is the mean square, also past the bound by rounding") {
  for (const auto& [name, activation, jump] : closed_forms()) {
    const std::string& tested = name;
    CAPTURE(tested);
    for (const double p : {1e-6, 0.3, 1.0, 4.0}) {
      CAPTURE(p);
      const auto square = [&a = *activation](double x) { return a.value(x) * a.value(x); };
      const auto slope_square = [&a = *activation](double x) { return a.derivative(x) * a.derivative(x); };
      const auto exact = activation->dual(p, p, p);
      CHECK(exact.value == testing::relative(testing::gaussian_mean(square, p), 2e-13));
      if (jump == Jump::None)
        CHECK(exact.derivative ==
              doctest::Approx(testing::gaussian_mean(slope_square, p)).epsilon(2e-13).scale(1e-3));
      const auto past = activation->dual(p, p, p * (1 + 4 * DBL_EPSILON));
      CHECK(past.value == testing::relative(exact.value, 1e-13));
      CHECK(past.derivative == testing::relative(exact.derivative, 1e-13));
    }
  }
}

TEST_CASE("closed forms: homogeneous duals are exact at both ends of the arc") {
  CHECK(relu()->dual(3, 3, 3).value == 1.5);
  CHECK(relu()->dual(3, 3, 3).derivative == 0.5);
  CHECK(relu()->dual(3, 3, -3).value == 0);
  CHECK(relu()->dual(3, 3, -3).derivative == 0);
  CHECK(numerics::abs()->dual(0.1, 0.1, 0.1).value == 0.1);
  CHECK(numerics::abs()->dual(0.1, 0.1, -0.1).value == 0.1);
  CHECK(sign()->dual(0.7, 0.7, 0.7).value == 1);
  CHECK(sign()->dual(0.7, 0.7, -0.7).value == -1);
  CHECK(relu()->dual(0, 2, 0).derivative == testing::relative(0.25, 1e-13));
}

// Near perfect correlation the exact forms are expanded in the angle theta, theta^2 = 2 gap to leading order:
// ReLU: E f'f' = 1/2 - theta/(2 pi) with cos(theta) = 1 - gap, i.e. sin(theta / 2)^2 = gap / 2.
TEST_CASE("closed forms: near-perfect correlation keeps its digits") {
  for (const double gap : {1e-3, 1e-7, 1e-10, 1e-12}) {
    CAPTURE(gap);
    // With p = q = 1 the covariance is rounded; take the gap that is really there.
    const double c = 1 - gap;
    const double real_gap = 1 - c;
    const double theta = 2 * std::asin(std::sqrt(real_gap / 2));
    CHECK(0.5 - relu()->dual(1, 1, c).derivative == testing::relative(theta / (2 * std::numbers::pi), 1e-9));
    CHECK(1 - sign()->dual(1, 1, c).value == testing::relative(2 * theta / std::numbers::pi, 1e-9));
    // erf at a huge variance: (1+2p)^2 - 4c^2 = 1 + 4p + 4 (p - c)(p + c).
    const double p = 0x1p40;
    const double scaled = p * c;
    const double root = std::sqrt(1 + 4 * p + 4 * (p - scaled) * (p + scaled));
    CHECK(erf()->dual(p, p, scaled).derivative == testing::relative(4 / (std::numbers::pi * root), 1e-13));
    // GELU over a huge variance is ReLU up to O(1/p).
    CHECK(gelu()->dual(p, p, scaled).value == testing::relative(relu()->dual(p, p, scaled).value, 1e-11));
  }
}

TEST_CASE("closed forms: float keeps its digits for near-duplicate inputs") {
  const ActivationPtr activation = relu();
  const std::size_t count = activation->auxiliary_count();
  for (const float gap : {1e-3F, 1e-5F, 3e-7F}) {
    CAPTURE(gap);
    const float p = 1.1F;
    const float q = 0.9F;
    float c = std::sqrt(p * q) * (1 - gap);
    float ntk = 1;
    std::vector<float> numbers(2 * count);
    std::vector<float*> left;
    std::vector<float*> right;
    for (std::size_t k = 0; k < count; ++k) {
      left.push_back(numbers.data() + k);
      right.push_back(numbers.data() + count + k);
    }
    activation->prepare(&p, left.data(), 1);
    activation->prepare(&q, right.data(), 1);
    const auto exact = activation->dual(p, q, c);
    activation->apply(DualRow<float>{&c, &ntk, left.data(), right.data(), 1});
    CHECK(std::abs(static_cast<double>(ntk) - exact.derivative) < FLT_EPSILON);
    CHECK(std::abs(static_cast<double>(c) - exact.value) < FLT_EPSILON);
  }
}

TEST_CASE("closed forms: inputs of very different scale keep relative accuracy") {
  // Homogeneous of degree n: dual(s^2 p, t^2 q, s t c) = (s t)^n dual(p, q, c); powers of two, so only
  // rounding differs.
  for (const double s : {0x1p-20, 1.0, 0x1p20})
    for (const double t : {0x1p-20, 0x1p20}) {
      const auto base = relu()->dual(1.3, 2.1, 0.7);
      const auto scaled = relu()->dual(s * s * 1.3, t * t * 2.1, s * t * 0.7);
      CHECK(scaled.value / (s * t) == testing::relative(base.value, 1e-15));
      CHECK(scaled.derivative == testing::relative(base.derivative, 1e-15));
      const auto cubic = rectified_monomial(3)->dual(s * s * 1.3, t * t * 2.1, s * t * 0.7);
      CHECK(cubic.value / std::pow(s * t, 3) ==
            testing::relative(rectified_monomial(3)->dual(1.3, 2.1, 0.7).value, 1e-14));
      CHECK(sign()->dual(s * s * 1.3, t * t * 2.1, s * t * 0.7).value ==
            testing::relative(sign()->dual(1.3, 2.1, 0.7).value, 1e-15));
    }
  // At tiny variances phi is its own tangent: value = phi'(0)^2 c up to O(p), for the odd ones.
  for (const double tiny : {1e-12, 1e-20}) {
    const double c = 0.3 * tiny;
    CHECK(numerics::sin()->dual(tiny, tiny, c).value == testing::relative(c, 1e-11));
    CHECK(erf()->dual(tiny, tiny, c).value == testing::relative(4 / std::numbers::pi * c, 1e-11));
    CHECK(numerics::cos()->dual(tiny, tiny, c).derivative == testing::relative(c, 1e-11));
    CHECK(gelu()->dual(tiny, tiny, c).value == testing::relative(c / 4, 1e-11));
  }
}

TEST_CASE("closed forms: waves of a huge variance vanish or approach their limit, never overflow") {
  const double p = 1e6;
  CHECK(numerics::sin()->dual(p, p, p).value == testing::relative(0.5, 1e-13));
  CHECK(numerics::sin()->dual(p, p, -p).value == testing::relative(-0.5, 1e-13));
  CHECK(numerics::cos()->dual(p, p, 0).value == 0);
  CHECK(numerics::cos()->dual(p, p, p - 0.5).value == testing::relative(std::exp(-0.5) / 2, 1e-13));
  CHECK(rbf(2)->dual(p, p, p).value == 1);
}

TEST_CASE("closed forms: known values") {
  // Cho & Saul: order-1 arc-cosine kernel at 60 degrees over 2, orthonormality of Hermite polynomials, RBF
  // kernel.
  const double pi = std::numbers::pi;
  CHECK(relu()->dual(1, 1, 0.5).value == testing::relative((std::sqrt(0.75) + pi / 3) / (2 * pi), 1e-15));
  CHECK(relu()->dual(1, 1, 0.5).derivative == testing::relative(1.0 / 3, 1e-15));
  for (const int degree : {1, 2, 7, 20})
    CHECK(hermite(degree)->dual(1, 1, 0.8).value == testing::relative(std::pow(0.8, degree), 1e-14));
  CHECK(rbf(0.5)->dual(1, 1, 0.25).value == testing::relative(std::exp(-0.75), 1e-15));
  CHECK(erf()->dual(0.5, 0.5, 0.5).value == testing::relative(1.0 / 3, 1e-15));
  CHECK(polynomial({0, 0, 1})->dual(2, 3, 1).value ==
        testing::relative(2 * 3 + 2 * 1, 1e-13));  // E u^2 v^2 = pq + 2c^2
}

TEST_CASE("closed forms: positive homogeneity is declared exactly where it holds") {
  for (const auto& [name, activation, jump] : closed_forms()) {
    const std::string& tested = name;
    CAPTURE(tested);
    const auto slopes = activation->homogeneous();
    bool homogeneous = true;
    for (const double x : {-2.0, 3.0})
      homogeneous = homogeneous && std::abs(activation->value(2 * x) - 2 * activation->value(x)) < 1e-12;
    REQUIRE(slopes.has_value() == homogeneous);
    if (!homogeneous) continue;
    CHECK(activation->value(-2) == -2 * slopes->negative);
    CHECK(activation->value(2) == 2 * slopes->positive);
  }
}

template <typename Scalar>
void check_rows(const Activation& activation, double tolerance) {
  const std::vector<Scalar> p = {0, Scalar(0.3), Scalar(1e-6), 2, 1, Scalar(1.5)};
  const std::vector<Scalar> q = {1, Scalar(0.3), 4, 0, 1, Scalar(0.7)};
  const std::vector<Scalar> c = {0, Scalar(0.3), Scalar(1e-3), 0, Scalar(-0.999), Scalar(0.4)};
  const std::size_t repeats = 23;  // 138 entries: more than two blocks of 64, and a rest
  const std::size_t size = repeats * p.size();
  const std::size_t count = activation.auxiliary_count();
  std::vector<Scalar> p_all;
  std::vector<Scalar> q_all;
  std::vector<Scalar> nngp;
  for (std::size_t r = 0; r < repeats; ++r) {
    p_all.insert(p_all.end(), p.begin(), p.end());
    q_all.insert(q_all.end(), q.begin(), q.end());
    nngp.insert(nngp.end(), c.begin(), c.end());
  }
  std::vector<Scalar> left(count * size);
  std::vector<Scalar> right(count * size);
  std::vector<Scalar*> left_rows;
  std::vector<Scalar*> right_rows;
  for (std::size_t k = 0; k < count; ++k) {
    left_rows.push_back(left.data() + k * size);
    right_rows.push_back(right.data() + k * size);
  }
  activation.prepare(p_all.data(), left_rows.data(), size);
  activation.prepare(q_all.data(), right_rows.data(), size);
  // A position without variance has no NTK either.
  std::vector<Scalar> ntk(size);
  for (std::size_t i = 0; i < size; ++i) ntk[i] = p_all[i] == 0 || q_all[i] == 0 ? Scalar{0} : Scalar{3};
  const std::vector<Scalar> incoming = ntk;
  std::vector<Scalar> nngp_only = nngp;
  activation.apply(DualRow<Scalar>{nngp.data(), ntk.data(), left_rows.data(), right_rows.data(), size});
  activation.apply(DualRow<Scalar>{nngp_only.data(), nullptr, left_rows.data(), right_rows.data(), size});
  for (std::size_t i = 0; i < size; ++i) {
    CAPTURE(i);
    const auto [value, derivative] = activation.dual(
        static_cast<double>(p_all[i]), static_cast<double>(q_all[i]), static_cast<double>(c[i % c.size()]));
    const double p_i = static_cast<double>(p_all[i]);
    const double q_i = static_cast<double>(q_all[i]);
    CHECK(std::abs(static_cast<double>(nngp[i]) - value) <= tolerance * scale(activation, p_i, q_i));
    CHECK(std::abs(static_cast<double>(ntk[i]) - static_cast<double>(incoming[i]) * derivative) <=
          3 * tolerance * derivative_scale(activation, p_i, q_i));
    CHECK(nngp_only[i] == nngp[i]);
  }
}

TEST_CASE("closed forms: rows agree with entries to the precision of their scalar") {
  for (const auto& [name, activation, jump] : closed_forms()) {
    const std::string& tested = name;
    CAPTURE(tested);
    check_rows<double>(*activation, 8 * DBL_EPSILON);
    check_rows<float>(*activation, 16 * static_cast<double>(FLT_EPSILON));
  }
}

}  // namespace
