#pragma once

#include <array>
#include <cmath>
#include <numbers>

namespace widelimit::numerics {

/// Coefficients, lowest order first, of a polynomial in t = s^2 close to arcsin(s) / s for 0 <= s <=
/// 1/sqrt(2): the interpolant at the Chebyshev nodes of t in [0, 1/2]. The function is analytic up to t = 1,
/// so each degree gains a factor 3 + sqrt(8): degree 8 gives 1e-8, degree 20 gives 1e-17.
template <typename Scalar, int degree>
std::array<Scalar, degree + 1> arcsine_series() {
  constexpr int count = degree + 1;
  std::array<long double, count> node, difference;
  for (int i = 0; i < count; ++i) {
    node[i] = (1 + std::cos(std::numbers::pi_v<long double> * (2 * i + 1) / (2 * count))) / 4;
    difference[i] = std::asin(std::sqrt(node[i])) / std::sqrt(node[i]);
  }
  for (int order = 1; order < count; ++order)  // Newton's divided differences
    for (int i = degree; i >= order; --i)
      difference[i] = (difference[i] - difference[i - 1]) / (node[i] - node[i - order]);
  std::array<long double, count> power{};
  for (int i = degree; i >= 0; --i) {  // power <- power * (t - node) + difference
    for (int k = degree; k > 0; --k) power[k] = power[k - 1] - node[i] * power[k];
    power[0] = difference[i] - node[i] * power[0];
  }
  std::array<Scalar, count> coefficients;
  for (int k = 0; k < count; ++k) coefficients[k] = static_cast<Scalar>(power[k]);
  return coefficients;
}

}  // namespace widelimit::numerics
