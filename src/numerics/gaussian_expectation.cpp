#include "widelimit/numerics/gaussian_expectation.hpp"

#include <algorithm>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <cmath>

#include "numerics/checks.hpp"
#include "numerics/gaussian_window.hpp"
#include "numerics/normal_density.hpp"

namespace widelimit::numerics {
namespace {

constexpr unsigned deepest_bisection = 15;
constexpr double tolerance = 1e-13;

/// f(sqrt(p) z) times the density of z, over a window.
struct WeightedFunction {
  const std::function<double(double)>& f;
  double deviation;

  /// The root of the density comes to f twice, so that far out neither overflows.
  double operator()(double z) const {
    const double root = root_normal_density(z);
    return root * (root * f(deviation * z));
  }

  /// Split at 0, where most activations have their kink, and at the breakpoints.
  [[nodiscard]] Expectation within(double window, const std::vector<double>& breakpoints) const {
    std::vector<double> edges = {-window, 0, window};
    for (const double at : breakpoints)
      if (std::abs(at / deviation) < window) edges.push_back(at / deviation);
    std::sort(edges.begin(), edges.end());
    Expectation sum{0, 0};
    for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
      if (edges[i] == edges[i + 1]) continue;
      double error = 0;
      sum.value += boost::math::quadrature::gauss_kronrod<double, 31>::integrate(
          *this, edges[i], edges[i + 1], deepest_bisection, tolerance, &error);
      sum.error += error;
    }
    return sum;
  }

  /// E|f| within the least window, to an order of magnitude.
  [[nodiscard]] double size() const {
    constexpr double step = 0.1037;
    double sum = 0;
    for (double z = -least_window; z < least_window; z += step) sum += step * std::abs((*this)(z));
    return sum;
  }

  /// The window past which 1e-14 of E|f| is left, infinity if there is none.
  [[nodiscard]] double window(double size) const {
    if (size == 0) return least_window;
    constexpr double log_share = -32.2;
    return gaussian_window([this](double z) { return std::log(std::abs(f(deviation * z))); },
                           std::log(size) + log_share);
  }
};

}  // namespace

Expectation gaussian_expectation(const std::function<double(double)>& f, double variance,
                                 const std::vector<double>& breakpoints) {
  if (!(variance >= 0 && std::isfinite(variance)))
    throw ArgumentError(
        fmt::format("gaussian_expectation: variance must be finite and at least 0, got {}", variance));
  if (variance == 0) return {f(0), 0};
  const double deviation = std::sqrt(variance);
  for (const double at : breakpoints) require_finite("gaussian_expectation", "a breakpoint", at);
  const WeightedFunction weighted{f, deviation};
  Expectation sum = weighted.within(least_window, breakpoints);
  if (!std::isfinite(sum.value))
    throw NumericalError(fmt::format(
        "gaussian_expectation: the function is not finite within {} standard deviations, at variance {}",
        least_window, variance));
  const double window = weighted.window(std::max(std::abs(sum.value), weighted.size()));
  if (window > least_window && window <= widest_window) sum = weighted.within(window, breakpoints);
  if (!(window <= widest_window) || !std::isfinite(sum.value))
    throw NumericalError(
        fmt::format("gaussian_expectation: at variance {} the function grows too fast: its expectation is "
                    "infinite, beyond the "
                    "range of double, or not to be had to 1e-12",
                    variance));
  return sum;
}

}  // namespace widelimit::numerics
