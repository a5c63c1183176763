#include "widelimit/numerics/gaussian_expectation.hpp"

#include <algorithm>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <cmath>
#include <numbers>

#include "numerics/checks.hpp"

namespace widelimit::numerics {
namespace {

/// At the end of the window the density has fallen to 2e-22 of its peak.
constexpr double window = 10;  // standard deviations
constexpr unsigned deepest_bisection = 15;
constexpr double tolerance = 1e-13;

}  // namespace

Expectation gaussian_expectation(const std::function<double(double)>& f, double variance,
                                 const std::vector<double>& breakpoints) {
  if (!(variance >= 0 && std::isfinite(variance)))
    throw ArgumentError(
        fmt::format("gaussian_expectation: variance must be finite and at least 0, got {}", variance));
  if (variance == 0) return {f(0), 0};
  const double deviation = std::sqrt(variance);
  // 0 is an edge, because most activations have their kink there.
  std::vector<double> edges = {-window, 0, window};
  for (const double at : breakpoints) {
    require_finite("gaussian_expectation", "a breakpoint", at);
    if (std::abs(at / deviation) < window) edges.push_back(at / deviation);
  }
  std::sort(edges.begin(), edges.end());
  const auto density = [&](double z) { return std::exp(-z * z / 2) * f(deviation * z); };
  Expectation sum{0, 0};
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    if (edges[i] == edges[i + 1]) continue;
    double error = 0;
    sum.value += boost::math::quadrature::gauss_kronrod<double, 31>::integrate(
        density, edges[i], edges[i + 1], deepest_bisection, tolerance, &error);
    sum.error += error;
  }
  if (!std::isfinite(sum.value))
    throw NumericalError(fmt::format(
        "gaussian_expectation: the function is not finite within {} standard deviations, at variance {}",
        window, variance));
  const double normaliser = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return {sum.value * normaliser, sum.error * normaliser};
}

}  // namespace widelimit::numerics
