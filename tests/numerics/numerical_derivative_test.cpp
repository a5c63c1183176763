#include "widelimit/numerics/numerical_derivative.hpp"

#include <doctest/doctest.h>

#include <cmath>

using widelimit::numerics::extrapolated_difference;
using widelimit::numerics::numerical_derivative;

TEST_CASE("numerical derivative: of smooth functions, near 0 and far from it") {
  const auto of_tanh = numerical_derivative([](double x) { return std::tanh(x); }, {});
  const auto of_wave =
      numerical_derivative([](double x) { return std::sin(3 * x) * std::exp(-x * x / 8); }, {});
  for (const double x : {-7.0, -1.3, -1e-3, 0.0, 0.4, 2.0, 5.0}) {
    CAPTURE(x);
    const double slope = 1 - std::tanh(x) * std::tanh(x);
    CHECK(std::abs(of_tanh(x) - slope) < 1e-10);
    const double envelope = std::exp(-x * x / 8);
    CHECK(std::abs(of_wave(x) - envelope * (3 * std::cos(3 * x) - x / 4 * std::sin(3 * x))) < 1e-10);
  }
  const auto of_square = numerical_derivative([](double x) { return x * x; }, {});
  for (const double x : {1e3, -1e6}) CHECK(of_square(x) == doctest::Approx(2 * x).epsilon(1e-10));
}

TEST_CASE(
    "numerical derivative: sides of a kink are told apart, however near, and the right one counts at it") {
  const auto slope = numerical_derivative([](double x) { return x < 0.5 ? x : 0.25 + x * x; }, {0.5});
  for (const double distance : {1e-6, 1e-3, 0.1}) {
    CAPTURE(distance);
    CHECK(slope(0.5 - distance) == doctest::Approx(1).epsilon(1e-8));
    CHECK(slope(0.5 + distance) == doctest::Approx(1 + 2 * distance).epsilon(1e-8));
  }
  CHECK(slope(0.5) == doctest::Approx(1).epsilon(1e-6));
  const auto of_absolute = numerical_derivative([](double x) { return std::abs(x); }, {0});
  CHECK(of_absolute(0) == doctest::Approx(1).epsilon(1e-8));
  CHECK(of_absolute(-1e-9) == doctest::Approx(-1).epsilon(1e-6));
}

TEST_CASE("numerical derivative: extrapolated from a step that is given") {
  CHECK(extrapolated_difference([](double x) { return std::exp(x); }, 1, 0.2) ==
        doctest::Approx(std::exp(1.0)).epsilon(1e-11));
}
