#include "numerics/gaussian_window.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace widelimit::numerics;

namespace {

constexpr double log_left = -50.66;  // 1e-22

TEST_CASE("gaussian_window: ten standard deviations for what is bounded, more for what grows") {
  CHECK(gaussian_window([](double) { return 0.0; }, log_left) == least_window);
  CHECK(gaussian_window([](double) { return -std::numeric_limits<double>::infinity(); }, log_left) ==
        least_window);
  // exp(b z) moves the mass by b, exp(a z^2) widens it.
  for (const double b : {-20.0, 5.0, 30.0}) {
    const double window = gaussian_window([b](double z) { return b * z; }, b * b / 2 + log_left);
    CHECK(window >= std::abs(b) + 9.5);
    CHECK(window <= std::abs(b) + 10.5);
  }
  const double wide = gaussian_window([](double z) { return 0.375 * z * z; }, std::log(2) + log_left);
  CHECK(wide >= 19);
  CHECK(wide <= 21);
}

TEST_CASE("gaussian_window: none where the integral is infinite, too wide, or known too little") {
  CHECK(std::isinf(gaussian_window([](double z) { return 0.5 * z * z; }, log_left)));
  CHECK(std::isinf(gaussian_window([](double z) { return 60 * z; }, 1800 + log_left)));
  CHECK(std::isinf(gaussian_window([](double z) { return z > 9 ? std::nan("") : 0.0; }, log_left)));
  // Past what is known the integrand falls on.
  CHECK(gaussian_window([](double z) { return std::abs(z) > 20 ? std::nan("") : 0.0; }, log_left) ==
        least_window);
}

TEST_CASE("outgrows_gaussians: what grows faster than every exp(a x^2)") {
  for (const auto f :
       {+[](double x) { return std::exp(x * x * x); }, +[](double x) { return std::exp(std::exp(x)); },
        +[](double x) { return std::cos(3 * x) * std::exp(std::pow(x, 4) / 1e6); }})
    CHECK(outgrows_gaussians(f));
  for (const auto f :
       {+[](double x) { return std::tanh(x); }, +[](double x) { return std::exp(x); },
        +[](double x) { return std::pow(x, 100); }, +[](double x) { return std::exp(x * x); },
        +[](double x) { return std::exp(x * x - 30 * x); },
        +[](double x) { return std::pow(x, 40) * std::exp(x * x / 10); },
        +[](double x) { return (2 + std::cos(x)) * std::exp(x * x); },
        +[](double x) { return std::exp(x * x) / (1 + std::pow(x, 4)); },
        +[](double x) { return std::exp(x) / (1 + std::exp(x)); },
        +[](double x) { return std::log(1 + std::exp(x)); }, +[](double x) { return std::tgamma(x + 1.5); },
        +[](double x) { return std::sqrt(4 - x * x); }})
    CHECK_FALSE(outgrows_gaussians(f));
}

}  // namespace
