#pragma once

#include <array>
#include <cmath>

#include "numerics/formula/interpolant.hpp"

namespace widelimit::numerics {

/// Coefficients, lowest order first, of a polynomial in t = 1 - a close to arccos(a) / sqrt(1 - a^2) for 0 <=
/// a <= 1: the interpolant at the Chebyshev nodes. The function is analytic but for a = -1, so each degree
/// gains a factor 3 + sqrt(8): degree 8 gives 1.3e-7, degree 19 gives 4e-16. All coefficients are positive,
/// so nothing cancels in their sum.
template <typename Scalar, int degree>
std::array<Scalar, degree + 1> angle_series() {
  return interpolant<Scalar, degree>(0, 1, [](long double t) {
    const long double sine = std::sqrt(t * (2 - t));
    return std::atan2(sine, 1 - t) / sine;
  });
}

}  // namespace widelimit::numerics
