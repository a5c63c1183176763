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

TEST_CASE("quadrature: a variance beyond what could be resolved is an error that names both") {
  const auto growing =
      quadrature_activation([](double x) { return std::exp(x); }, [](double x) { return std::exp(x); });
  const auto closed = exponential(1, 1);
  CHECK(growing->dual(2, 3, 1).value == testing::relative(closed->dual(2, 3, 1).value, 1e-10));
  CHECK_THROWS_WITH_AS(
      (void)growing->dual(1e6, 1, 0),
      "quadrature_activation: phi could be resolved for |x| <= 512 only, a variance of 1e+06 needs "
      "13000: use smaller weight variances, or normalise before this layer",
      NumericalError);
}

}  // namespace
