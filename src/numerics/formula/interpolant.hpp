#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace widelimit::numerics {

/// Coefficients, lowest order first, of the polynomial that agrees with `function` at the Chebyshev nodes of [low,
/// high]; in long double until they are rounded.
template <typename Scalar, int degree, typename Function>
std::array<Scalar, degree + 1> interpolant(long double low, long double high, const Function& function) {
  constexpr std::size_t count = degree + 1;
  std::array<long double, count> node, difference;
  for (std::size_t i = 0; i < count; ++i) {
    // Chebyshev nodes come in descending order; divided differences and Newton's form accept any.
    const long double place = std::cos(std::numbers::pi_v<long double> * (2 * i + 1) / (2 * count));
    node[i] = low + (high - low) * ((1 + place) / 2);
    difference[i] = function(node[i]);
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
