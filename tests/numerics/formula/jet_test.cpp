// Slopes of activations, over the whole range of their arguments, against differences of their formulas in sixty
// digits.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "numerics/formula/homogeneous.hpp"
#include "numerics/formula/polynomial.hpp"
#include "numerics/formula/vector_formulas.hpp"
#include "widelimit/numerics/activations.hpp"

/// The functions of formulas (widelimit/numerics/formula/number.hpp) for numbers of sixty digits.
namespace boost::multiprecision {

using Precise = number<cpp_bin_float<60>, et_off>;

inline Precise root(const Precise& x) { return sqrt(x); }
inline Precise exponential(const Precise& x) { return exp(x); }
inline Precise exponential_less_one(const Precise& x) { return expm1(x); }
inline Precise hyperbolic_sine(const Precise& x) { return sinh(x); }
inline Precise angle(const Precise& y, const Precise& x) { return atan2(y, x); }
inline Precise acute_angle(const Precise& y, const Precise& x, const Precise& /*inverse*/) {
  return atan2(y, x);
}
inline Precise magnitude(const Precise& x) { return abs(x); }
inline Precise fused(const Precise& a, const Precise& b, const Precise& c) { return a * b + c; }
/// Bounds are for rounding errors, of which there are none; smooth functions go on behind them.
inline Precise at_least(const Precise& /*low*/, const Precise& x) { return x; }
inline bool is_less(const Precise& a, const Precise& b) { return a < b; }
inline Precise choose(bool condition, const Precise& yes, const Precise& no) { return condition ? yes : no; }
inline double epsilon_of(const Precise& /*x*/) { return std::numeric_limits<double>::epsilon(); }

}  // namespace boost::multiprecision

namespace widelimit::numerics::slopes_of_formulas_test {
namespace {

using boost::multiprecision::Precise;
using formula::Mapped;

struct Place {
  double p, q, c;
};

/// The slopes of a formula by differences whose steps are 1e-25 of the arguments.
template <typename Formula>
DualSlopes precise_slopes(const Formula& of, const Place& at) {
  const auto dual = [&](const Precise& p, const Precise& q, const Precise& c) {
    return of.template apply<Precise>(of.prepare(p), of.prepare(q), c);
  };
  const Precise p = at.p, q = at.q, c = at.c, tiny("1e-25");
  const auto along = [&](const Precise& in_p, const Precise& in_q, const Precise& in_c, const Precise& step) {
    const Mapped<Precise> up = dual(p + in_p * step, q + in_q * step, c + in_c * step);
    const Mapped<Precise> down = dual(p - in_p * step, q - in_q * step, c - in_c * step);
    return Dual<double>{static_cast<double>((up.value - down.value) / (2 * step)),
                        static_cast<double>((up.factor - down.factor) / (2 * step))};
  };
  const Mapped<Precise> own = dual(p, q, c);
  const Dual<double> in_c = along(0, 0, 1, tiny * sqrt(p * q));
  return {{static_cast<double>(own.value), static_cast<double>(own.factor)},
          along(1, 0, 0, tiny * p),
          along(0, 1, 0, tiny * q),
          in_c.derivative,
          in_c.value};
}

/// The slopes along p = q = c.
template <typename Formula>
Dual<double> precise_self_slopes(const Formula& of, double variance) {
  const auto dual = [&](const Precise& p) {
    const auto numbers = of.prepare(p);
    return of.template apply<Precise>(numbers, numbers, p);
  };
  const Precise p = variance, step = p * Precise("1e-25");
  const Mapped<Precise> up = dual(p + step), down = dual(p - step);
  return {static_cast<double>((up.value - down.value) / (2 * step)),
          static_cast<double>((up.factor - down.factor) / (2 * step))};
}

struct SlopesCase {
  std::string name;
  ActivationPtr activation;
  std::function<DualSlopes(const Place&)> precise;
  std::function<Dual<double>(double)> precise_self;
  bool is_smooth = true;      ///< Its slopes are finite at perfect correlation.
  double largest_power = 10;  ///< Of ten, of the variances.
};

template <typename Formula>
SlopesCase smooth(std::string name, ActivationPtr activation, Formula formula, double largest_power = 10) {
  return {std::move(name),
          std::move(activation),
          [formula](const Place& at) { return precise_slopes(formula, at); },
          [formula](double p) { return precise_self_slopes(formula, p); },
          true,
          largest_power};
}
template <typename Formula>
SlopesCase steep(std::string name, ActivationPtr activation, Formula formula) {
  SlopesCase of = smooth(std::move(name), std::move(activation), std::move(formula));
  of.is_smooth = false;
  return of;
}

std::vector<SlopesCase> slopes_cases() {
  using namespace formula;
  constexpr double pi = std::numbers::pi;
  return {
      smooth("identity", identity(), LinearFormula{1}),
      steep("relu", relu(), HomogeneousFormula{{.aligned = 0.5, .opposed = 0, .weight = 1 / (2 * pi)}}),
      steep("ab_relu", homogeneous(-0.5, 0.75),
            HomogeneousFormula{{.aligned = 0.40625, .opposed = -0.375, .weight = 1.5625 / (2 * pi)}}),
      steep("sign", sign(), SignFormula{{8}}),
      steep("step", rectified_monomial(0), StepFormula{{8}}),
      steep("rectified square", rectified_monomial(2), RectifiedFormula{2}),
      steep("rectified of degree 5", rectified_monomial(5), RectifiedFormula{5}),
      smooth("erf", erf(), ErfFormula(1, 1, 0)),
      smooth("erf with numbers", erf(1.25, 0.5, 0, 0.25), ErfFormula(1.25, 0.5, 0.25)),
      smooth("gelu", gelu(), GeluFormula()),
      smooth("gaussian", gaussian(1.5, -0.5), GaussianFormula(1.5, -0.5)),
      smooth("growing gaussian", gaussian(1, 0.0078125), GaussianFormula(1, 0.0078125), 1),
      smooth("sin", sin(1.1, 0.9, 0.3), WaveFormula(1.1, 0.9, 0.3, false), 2.5),
      smooth("rbf", rbf(0.75), RadialFormula(0.75), 2.5),
      smooth("exp", exponential(1.5, 0.5), GrowthFormula(1.5, 0.5), 1),
      smooth("square", monomial(2), PolynomialFormula{0, {{0, 1}, {0}, {std::sqrt(2.0)}}}),
      smooth("hermite", hermite(2), PolynomialFormula{1, {{0, std::sqrt(0.5)}, {}, {1}}}),
      smooth("gabor", gabor(), GaborFormula{}),
  };
}

/// Places over the whole range: variances of every size, equal and not, correlations of any size, next to 1 and -1, and
/// these themselves, where the slopes are finite.
std::vector<Place> places(const SlopesCase& of) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> power(-10, of.largest_power), correlation(-1, 1), near(-12, -1);
  std::vector<Place> all;
  for (int i = 0; i < 600; ++i) {
    const int kind = i % 6;
    const double p = std::pow(10, power(random)), q = i % 4 < 2 ? p : std::pow(10, power(random));
    double rho = correlation(random);
    if (kind == 0) rho = of.is_smooth ? 1 : 0.5;
    if (kind == 1) rho = of.is_smooth ? -1 : -0.5;
    if (kind == 2) rho = std::copysign(1 - std::pow(10, near(random)), rho);
    if (kind == 3)
      rho = 1e-12;  // Formulas have two branches, which meet at 0 but for the rounding of their numbers.
    // Beyond perfect correlation by rounding there is no dual.
    if (p != q) rho *= 1 - 4 * std::numeric_limits<double>::epsilon();
    all.push_back({p, q, p == q ? rho * p : rho * std::sqrt(p) * std::sqrt(q)});
  }
  return all;
}

/// The largest error of slopes, times their arguments, relative to the root mean squares of both variables, and where
/// slopes are larger than these to themselves.
double worst_error(const SlopesCase& of, const std::vector<Place>& all,
                   const std::function<DualSlopes(const Place&)>& slopes) {
  double worst = 0;
  for (const Place& at : all) {
    const auto own = [&](double v) { return of.activation->dual(v, v, v); };
    const double value_scale = std::sqrt(own(at.p).value) * std::sqrt(own(at.q).value);
    const double factor_scale = std::sqrt(own(at.p).derivative) * std::sqrt(own(at.q).derivative);
    const DualSlopes computed = slopes(at), exact = of.precise(at);
    const auto note = [&](double got, double expected, double scale) {
      if (got == expected) return;
      const double error = std::abs(got - expected) / std::max(scale, std::abs(expected));
      if (!(error <= worst)) worst = error;
    };
    const double size = std::sqrt(at.p) * std::sqrt(at.q);
    note(computed.left.value, exact.left.value, value_scale / at.p);
    note(computed.right.value, exact.right.value, value_scale / at.q);
    note(computed.value_in_c, exact.value_in_c, value_scale / size);
    note(computed.left.derivative, exact.left.derivative, factor_scale / at.p);
    note(computed.right.derivative, exact.right.derivative, factor_scale / at.q);
    note(computed.derivative_in_c, exact.derivative_in_c, factor_scale / size);
  }
  return worst;
}

/// The largest error of the slopes of one variable with itself, relative to them or, where these are small, to a
/// hundredth of what the dual over the variance is.
double worst_self_error(const SlopesCase& of) {
  double worst = 0;
  for (double power = -10; power <= of.largest_power; power += 0.25) {
    const double p = std::pow(10, power);
    const SelfSlopes computed = of.activation->self_slopes(p);
    const Dual<double> exact = of.precise_self(p);
    const auto note = [&](double got, double expected, double dual) {
      if (got == expected) return;
      const double error = std::abs(got - expected) / std::max(std::abs(expected), 0.01 * std::abs(dual) / p);
      if (!(error <= worst)) worst = error;
    };
    note(computed.slope.value, exact.value, computed.dual.value);
    note(computed.slope.derivative, exact.derivative, computed.dual.derivative);
  }
  return worst;
}

/// The slopes that a backward pass through a row of one entry applies.
template <typename Scalar>
DualSlopes row_slopes(const Activation& activation, const Place& at) {
  const std::size_t count = activation.auxiliary_count();
  const auto p = static_cast<Scalar>(at.p), q = static_cast<Scalar>(at.q), c = static_cast<Scalar>(at.c);
  std::vector<Scalar> numbers(2 * count);
  std::vector<Scalar*> left, right;
  for (std::size_t k = 0; k < count; ++k) {
    left.push_back(&numbers[k]);
    right.push_back(&numbers[count + k]);
  }
  activation.prepare(&p, left.data(), 1);
  activation.prepare(&q, right.data(), 1);
  const auto through = [&](Scalar nngp, Scalar ntk) {
    const Scalar before = 1;
    Scalar in_p = 0, in_q = 0;
    activation.apply_adjoint(
        AdjointRow<Scalar>{&c, &before, &p, &q, left.data(), right.data(), &nngp, &ntk, &in_p, &in_q, 1});
    return std::array{static_cast<double>(nngp), static_cast<double>(ntk), static_cast<double>(in_p),
                      static_cast<double>(in_q)};
  };
  const auto value = through(1, 0), factor = through(0, 1);
  return {{0, factor[1]}, {value[2], factor[2]}, {value[3], factor[3]}, factor[0], value[0]};
}

/// GELU's slopes are differences of terms that grow as the root of the variance.
double tolerance_of(const SlopesCase& of) { return of.name == "gelu" ? 4e-11 : 5e-15; }

TEST_CASE("duals of activations lose no digits of their formulas over their whole range") {
  for (const SlopesCase& of : slopes_cases()) {
    CAPTURE(of.name);
    double worst = 0;
    for (const Place& at : places(of)) {
      const auto own = [&](double v) { return of.activation->dual(v, v, v); };
      const Dual<double> computed = of.activation->dual(at.p, at.q, at.c), exact = of.precise(at).dual;
      const double value_scale = std::sqrt(own(at.p).value) * std::sqrt(own(at.q).value);
      const double factor_scale = std::sqrt(own(at.p).derivative) * std::sqrt(own(at.q).derivative);
      const auto note = [&](double got, double expected, double scale) {
        if (got == expected) return;
        const double error = std::abs(got - expected) / std::max(scale, std::abs(expected));
        if (!(error <= worst)) worst = error;
      };
      note(computed.value, exact.value, value_scale);
      note(computed.derivative, exact.derivative, factor_scale);
    }
    CHECK(worst < 2e-15);
  }
}

TEST_CASE("slopes of activations are those of their formulas over their whole range") {
  for (const SlopesCase& of : slopes_cases()) {
    CAPTURE(of.name);
    const std::vector<Place> all = places(of);
    CHECK(worst_error(of, all, [&](const Place& at) { return of.activation->slopes(at.p, at.q, at.c); }) <
          tolerance_of(of));
    CHECK(worst_self_error(of) < 2e-13);
  }
}

// Rows of ReLU-like functions are written for vectors by hand, because they are faster than the formula.
TEST_CASE("rows go back by the slopes of their formulas over their whole range") {
  for (const SlopesCase& of : slopes_cases()) {
    CAPTURE(of.name);
    CHECK(worst_error(of, places(of), [&](const Place& at) {
            return row_slopes<double>(*of.activation, at);
          }) < tolerance_of(of));
  }
}

TEST_CASE("rows of floats go back by the slopes of their formulas") {
  for (const SlopesCase& of : slopes_cases()) {
    CAPTURE(of.name);
    std::vector<Place> all = places(of);
    if (const auto formula = formula::formula_of(*of.activation))
      std::erase_if(all, [largest = formula->largest_variance(formula::Precision::narrow)](const Place& at) {
        return std::max(at.p, at.q) > largest;
      });
    // Numbers of floats; a covariance beyond perfect correlation by rounding has no dual.
    for (Place& at : all) {
      at.p = static_cast<float>(at.p);
      at.q = static_cast<float>(at.q);
      at.c = static_cast<float>(at.c * (1 - 1e-5));
    }
    CHECK(worst_error(of, all, [&](const Place& at) { return row_slopes<float>(*of.activation, at); }) <
          2e-5);
  }
}

}  // namespace
}  // namespace widelimit::numerics::slopes_of_formulas_test
