#pragma once

#include <cmath>
#include <numbers>

/// Interpolation in the degree + 1 Chebyshev points of [-1, 1] by the barycentric formula.
namespace widelimit::propagation {

inline double chebyshev_point(int j, int degree) { return std::cos(std::numbers::pi * j / degree); }

inline double barycentric_weight(int j, int degree) {
  return (j % 2 == 0 ? 1 : -1) * (j == 0 || j == degree ? 0.5 : 1);
}

}  // namespace widelimit::propagation
