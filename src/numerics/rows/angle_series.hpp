#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace widelimit::numerics {

/// Coefficients, lowest order first, of a polynomial in t = 1 - a close to arccos(a) / sqrt(1 - a^2) for 0 <=
/// a <= 1: the interpolant at the Chebyshev nodes. The function is analytic but for a = -1, so each degree
/// gains a factor 3 + sqrt(8): degree 8 gives 1.3e-7, degree 19 gives 4e-16. All coefficients are positive,
/// so nothing cancels in their sum.
template <typename Scalar, int degree>
std::array<Scalar, degree + 1> angle_series() {
  constexpr std::size_t count = degree + 1;
  std::array<long double, count> node, difference;
  for (std::size_t i = 0; i < count; ++i) {
    node[i] = (1 + std::cos(std::numbers::pi_v<long double> * (2 * i + 1) / (2 * count))) / 2;
    const long double sine = std::sqrt(node[i] * (2 - node[i]));
    difference[i] = std::atan2(sine, 1 - node[i]) / sine;
  }
  for (std::size_t order = 1; order < count; ++order)  // Newton's divided differences
    for (std::size_t i = count; i-- > order;)
      difference[i] = (difference[i] - difference[i - 1]) / (node[i] - node[i - order]);
  std::array<long double, count> power{};
  for (std::size_t i = count; i-- > 0;) {  // power <- power * (t - node) + difference
    for (std::size_t k = count - 1; k > 0; --k) power[k] = power[k - 1] - node[i] * power[k];
    power[0] = difference[i] - node[i] * power[0];
  }
  std::array<Scalar, count> coefficients;
  for (std::size_t k = 0; k < count; ++k) coefficients[k] = static_cast<Scalar>(power[k]);
  return coefficients;
}

}  // namespace widelimit::numerics
