// What activations by quadrature refuse: functions that are wrong or not smooth, variances beyond what is resolved.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "numerics/relative.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/activations.hpp"
#include "widelimit/numerics/quadrature_activation.hpp"

using namespace widelimit;
using namespace widelimit::numerics;

namespace {

TEST_CASE("quadrature: wrong functions and arguments") {
  const auto one = [](double) { return 1.0; };
  CHECK_THROWS_WITH_AS((void)quadrature_activation(nullptr, one),
                       "quadrature_activation: phi and phi_derivative must be callable, one of them is empty",
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)quadrature_activation([](double x) { return x; }, one, {{0.5, std::nan("")}}),
                       "quadrature_activation: breakpoints[1] must be a finite number, got nan",
                       ArgumentError);
  CHECK_THROWS_WITH_AS(
      (void)quadrature_activation([](double x) { return 2 * x; }, one),
      doctest::Contains(
          "quadrature_activation: the derivative, given or taken by differences, is not that of phi"),
      ArgumentError);
  CHECK_THROWS_WITH_AS((void)quadrature_activation([](double x) { return std::sqrt(x); }, one),
                       "quadrature_activation: phi and its derivative must be finite within [-1, 1]",
                       ArgumentError);
  // Rough everywhere: no search finds its kinks.
  const auto rough = [](double x) {
    double sum = 0;
    for (int k = 0; k < 30; ++k) sum += std::ldexp(std::cos(std::ldexp(x, 2 * k)), -k);
    return sum;
  };
  CHECK_THROWS_WITH_AS((void)quadrature_activation(rough, one),
                       doctest::Contains("quadrature_activation: phi"), ArgumentError);
}

TEST_CASE("quadrature: functions that compute in less than double") {
  const auto slope = [](double x) { return 1 - std::tanh(x) * std::tanh(x); };
  const auto in_float = [](double x) { return static_cast<double>(std::tanh(static_cast<float>(x))); };
  const auto says = doctest::Contains("own: all values of phi, or of its derivative, are numbers of float32");
  CHECK_THROWS_WITH_AS((void)quadrature_activation(in_float, {.name = "own"}), says, ArgumentError);
  CHECK_THROWS_WITH_AS((void)quadrature_activation(in_float, slope, {.name = "own"}), says, ArgumentError);
  CHECK_THROWS_WITH_AS(
      (void)quadrature_activation([](double x) { return std::tanh(x); },
                                  [&](double x) { return 1 - in_float(x) * in_float(x); }, {.name = "own"}),
      doctest::Contains("own: "), ArgumentError);
  // Steps may have any heights: theirs are numbers of float as well.
  const auto steps = quadrature_activation(
      [](double x) { return static_cast<double>(std::floor(static_cast<float>(4 * x))); });
  CHECK(std::isfinite(steps->dual(1, 1, 0.5).value));
}

TEST_CASE("quadrature: a function that is 0 where nearly all of a variable lies is right, or refused") {
  const auto above =
      quadrature_activation([](double x) { return std::max(x - 1, 0.0); }, {.name = "above one"});
  // E max(u - 1, 0)^2 = (p + 1) Phi(-1 / s) - s phi(1 / s), s the root of the variance p.
  for (const double deviation : {2.0, 0.5, 0.2}) {
    const double at = 1 / deviation, p = deviation * deviation;
    const double density = std::exp(-at * at / 2) / std::sqrt(2 * 3.14159265358979323846);
    const double expected = (p + 1) * std::erfc(at / std::sqrt(2.0)) / 2 - deviation * density;
    CHECK(above->dual(p, p, p).value == doctest::Approx(expected).epsilon(1e-9));
  }
  for (const double deviation : {0.12, 0.1, 0.05})
    CHECK_THROWS_WITH_AS((void)above->dual(deviation * deviation, deviation * deviation, 0),
                         doctest::Contains("phi is 0 within six standard deviations"), NumericalError);
  CHECK(above->dual(0, 0, 1).value == 0);
}

TEST_CASE("quadrature: a variance beyond what could be resolved is an error that names both") {
  const auto growing =
      quadrature_activation([](double x) { return std::exp(x); }, [](double x) { return std::exp(x); });
  const auto closed = exponential(1, 1);
  for (const double p : {2.0, 25.0, 160.0})
    CHECK(growing->dual(p, p, p).value == testing::relative(closed->dual(p, p, p).value, 1e-10));
  CHECK_THROWS_WITH_AS(
      (void)growing->dual(1e6, 1, 0),
      "quadrature_activation: phi could be resolved for |x| <= 704 only, a variance of 1e+06 needs at least "
      "10000: use smaller weight variances, or normalise before this layer",
      NumericalError);
  const auto says = doctest::Contains(
      "own: for u of variance 400 E phi(u)^2 or E phi'(u)^2 is infinite, beyond the range of double, or not "
      "to be had "
      "to 1e-10, because phi grows too fast: phi could be resolved for |x| <= 704 only; use smaller");
  const auto named = quadrature_activation([](double x) { return std::exp(x); }, {.name = "own"});
  CHECK_THROWS_WITH_AS((void)named->dual(400, 1, 1), says, NumericalError);
  CHECK_THROWS_WITH_AS((void)named->dual(1, 400, 1), says, NumericalError);
  CHECK_THROWS_WITH_AS((void)named->slopes(400, 400, 399), says, NumericalError);
  CHECK_THROWS_WITH_AS((void)named->self_slopes(400), says, NumericalError);
}

TEST_CASE("quadrature: an infinite expectation is refused at every variance that has it") {
  const auto square = quadrature_activation([](double x) { return std::exp(x * x); });
  CHECK(square->dual(0.2, 0.2, 0.2).value == testing::relative(1 / std::sqrt(0.2), 1e-10));
  for (const double p : {0.25, 0.3, 1.5, 100.0}) CHECK_THROWS_AS((void)square->dual(p, p, 0), NumericalError);
  // On one side, on both, with zeros, and with a growth that no variance is small enough for.
  using Function = double (*)(double);
  for (const Function phi : {Function{[](double x) { return std::exp(x * x * x); }},
                             Function{[](double x) { return std::exp(-x * x * x); }},
                             Function{[](double x) { return std::sinh(std::pow(x, 3)); }},
                             Function{[](double x) { return std::cos(x) * std::exp(std::pow(x, 4)); }},
                             Function{[](double x) { return std::exp(std::exp(x)); }}}) {
    const auto activation = quadrature_activation(phi, {.name = "own"});
    for (const double p : {1e-6, 0.01, 1.0})
      CHECK_THROWS_WITH_AS((void)activation->dual(p, p, p / 2),
                           doctest::Contains("own: E phi(u)^2 is infinite for u of variance "),
                           NumericalError);
  }
}

TEST_CASE("quadrature: terms that overflow are no growth") {
  using Function = double (*)(double);
  struct Case {
    Function careless, careful;
  };
  for (const auto& [careless, careful] :
       {Case{[](double x) { return std::exp(x) / (1 + std::exp(x)); },
             [](double x) { return 1 / (1 + std::exp(-x)); }},
        Case{[](double x) { return std::log(1 + std::exp(x)); },
             [](double x) { return std::log1p(std::exp(x)); }},
        Case{[](double x) { return std::pow(x, 4) / (1 + std::exp(std::pow(x, 4))); },
             [](double x) {
               return std::pow(x, 4) * std::exp(-std::pow(x, 4)) / (1 + std::exp(-std::pow(x, 4)));
             }},
        Case{[](double x) { return std::exp(x) * std::exp(-x * x); },
             [](double x) { return std::exp(x - x * x); }}}) {
    const auto one = quadrature_activation(careless), other = quadrature_activation(careful);
    for (const double p : {1e-3, 1.0}) {
      CHECK(one->dual(p, p, 0.3 * p).value == testing::relative(other->dual(p, p, 0.3 * p).value, 1e-10));
      CHECK(one->dual(p, p, 0.3 * p).derivative ==
            testing::relative(other->dual(p, p, 0.3 * p).derivative, 1e-8));
    }
  }
}

}  // namespace
