#pragma once

#include <Eigen/Core>
#include <cmath>

namespace widelimit::covariance_sde {

/// Smallest pivot, relative to its diagonal entry, that rounding cannot explain.
inline constexpr double pivot_guard = 1e-15;
/// A pivot below minus this part of its diagonal entry means that the matrix has left the cone.
inline constexpr double exit_tolerance = 1e-12;

/// Lower factor of the positive semidefinite v (lower triangle read). A pivot within the guard is 0 together
/// with its column. Returns false, with l unfinished, if v is indefinite beyond rounding or not finite.
template <typename Square>
[[nodiscard]] bool guarded_cholesky(const Square& v, Square& l) {
  const Eigen::Index m = v.rows();
  l.setZero();
  for (Eigen::Index j = 0; j < m; ++j) {
    const double pivot = v(j, j) - l.row(j).head(j).squaredNorm();
    if (!(pivot >= -exit_tolerance * std::abs(v(j, j)))) return false;
    if (pivot <= pivot_guard * v(j, j)) continue;
    l(j, j) = std::sqrt(pivot);
    for (Eigen::Index i = j + 1; i < m; ++i)
      l(i, j) = (v(i, j) - l.row(i).head(j).dot(l.row(j).head(j))) / l(j, j);
  }
  return true;
}

}  // namespace widelimit::covariance_sde
