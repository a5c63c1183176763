#include "widelimit/numerics/gaussian_expectation.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "numerics/relative.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::numerics;

namespace {

TEST_CASE("gaussian_expectation: known means, and the error estimate covers the error") {
  for (const double p : {1e-12, 0.3, 1.0, 50.0, 1e6}) {
    CAPTURE(p);
    const auto check = [&](const Expectation& actual, double expected) {
      CHECK(actual.value == testing::relative(expected, 1e-12));
      CHECK(std::abs(actual.value - expected) <= actual.error + 1e-14 * std::abs(expected));
    };
    check(gaussian_expectation([](double x) { return x * x; }, p), p);
    check(gaussian_expectation([](double x) { return std::pow(x, 6); }, p), 15 * p * p * p);
    check(gaussian_expectation([](double x) { return std::abs(x); }, p), std::sqrt(2 * p / std::numbers::pi));
    check(gaussian_expectation([](double x) { return 1 / std::cosh(x) + std::tanh(x); }, p),
          gaussian_expectation([](double x) { return 1 / std::cosh(x); }, p).value);
    check(gaussian_expectation([](double x) { return std::exp(-x * x); }, p), 1 / std::sqrt(1 + 2 * p));
  }
}

TEST_CASE("gaussian_expectation: breakpoints split jumps and kinks away from 0") {
  // P(x > b) and E max(x - b, 0).
  for (const double p : {0.2, 1.0, 9.0})
    for (const double b : {-1.5, 0.7}) {
      const double tail = std::erfc(b / std::sqrt(2 * p)) / 2;
      const double density = std::exp(-b * b / (2 * p)) / std::sqrt(2 * std::numbers::pi * p);
      CHECK(gaussian_expectation([b](double x) { return x > b ? 1.0 : 0.0; }, p, {b}).value ==
            testing::relative(tail, 1e-12));
      CHECK(gaussian_expectation([b](double x) { return std::max(x - b, 0.0); }, p, {5.0, b, b}).value ==
            testing::relative(p * density - b * tail, 1e-12));
    }
}

TEST_CASE("gaussian_expectation: functions that grow") {
  for (const double p : {1.0, 25.0, 100.0, 300.0})
    CHECK(gaussian_expectation([](double x) { return std::exp(x); }, p).value ==
          testing::relative(std::exp(p / 2), 1e-12));
  // E x^40 = 39 * 37 * .. * 1 at variance 1.
  double moment = 1;
  for (int k = 1; k < 40; k += 2) moment *= k;
  CHECK(gaussian_expectation([](double x) { return std::pow(x, 40); }, 1).value ==
        testing::relative(moment, 1e-12));
  const auto squares = [](double x) { return std::exp(x * x); };
  CHECK(gaussian_expectation(squares, 0.4).value == testing::relative(1 / std::sqrt(0.2), 1e-12));
  for (const double p : {0.5, 3.0})
    CHECK_THROWS_WITH_AS((void)gaussian_expectation(squares, p),
                         doctest::Contains("the function grows too fast: its expectation is infinite"),
                         NumericalError);
}

TEST_CASE("gaussian_expectation: edges and wrong arguments") {
  const auto square_plus_one = [](double x) { return x * x + 1; };
  CHECK(gaussian_expectation(square_plus_one, 0).value == 1);
  CHECK(gaussian_expectation(square_plus_one, 1, {1e9}).value == testing::relative(2, 1e-13));
  CHECK_THROWS_WITH_AS((void)gaussian_expectation(square_plus_one, -1),
                       "gaussian_expectation: variance must be finite and at least 0, got -1", ArgumentError);
  CHECK_THROWS_WITH_AS((void)gaussian_expectation(square_plus_one, std::numeric_limits<double>::infinity()),
                       "gaussian_expectation: variance must be finite and at least 0, got inf",
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)gaussian_expectation(square_plus_one, 1, {std::nan("")}),
                       "gaussian_expectation: a breakpoint must be a finite number, got nan", ArgumentError);
  CHECK_THROWS_WITH_AS(
      (void)gaussian_expectation([](double x) { return 1 / std::max(x - 3, 0.0); }, 1),
      "gaussian_expectation: the function is not finite within 10 standard deviations, at variance 1",
      NumericalError);
}

}  // namespace
