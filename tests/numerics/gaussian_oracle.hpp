#pragma once

#include <algorithm>
#include <array>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <cmath>
#include <numbers>

/// Expectations by nested adaptive Gauss-Kronrod in polar coordinates. Shares no formula with the library:
/// neither a dual activation in closed form nor its quadrature rules.
namespace widelimit::testing {

/// E[f(u) g(v)] for centred Gaussians with variances p, q > 0 and covariance c; u = sqrt(p) r cos(a),
/// v = sqrt(q) r cos(a - theta). Split at the four angles where u or v changes sign: f and g may be singular
/// at 0.
template <typename F, typename G>
double pair_expectation(F&& f, G&& g, double p, double q, double c) {
  using Rule = boost::math::quadrature::gauss_kronrod<double, 61>;
  constexpr double pi = std::numbers::pi;
  const double theta = std::acos(std::clamp(c / std::sqrt(p * q), -1.0, 1.0));
  const auto along_ray = [&](double angle) {
    const double u = std::sqrt(p) * std::cos(angle);
    const double v = std::sqrt(q) * std::cos(angle - theta);
    const auto density = [&](double r) { return r * std::exp(-r * r / 2) * f(u * r) * g(v * r); };
    return Rule::integrate(density, 0.0, 4.0, 6, 1e-13) + Rule::integrate(density, 4.0, 13.0, 6, 1e-13);
  };
  std::array<double, 5> split = {-pi / 2, pi / 2, theta - pi / 2, theta + pi / 2, 3 * pi / 2};
  std::sort(split.begin(), split.end());
  double sum = 0;
  for (std::size_t i = 0; i + 1 < split.size(); ++i)
    if (split[i + 1] > split[i]) sum += Rule::integrate(along_ray, split[i], split[i + 1], 6, 1e-12);
  return sum / (2 * pi);
}

/// E[f(x)] for a centred Gaussian of the given variance; f may be singular at 0.
template <typename F>
double gaussian_mean(F&& f, double variance) {
  using Rule = boost::math::quadrature::gauss_kronrod<double, 61>;
  const double deviation = std::sqrt(variance);
  const auto density = [&](double z) {
    return std::exp(-z * z / 2) * (f(deviation * z) + f(-deviation * z));
  };
  const double sum =
      Rule::integrate(density, 0.0, 4.0, 10, 1e-14) + Rule::integrate(density, 4.0, 13.0, 10, 1e-14);
  return sum / std::sqrt(2 * std::numbers::pi);
}

}  // namespace widelimit::testing
