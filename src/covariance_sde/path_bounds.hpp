#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <optional>

#include "covariance_sde/arguments.hpp"
#include "numerics/eigen_solver.hpp"
#include "widelimit/covariance_sde/ensemble.hpp"

/// What paths of the SDE and of finite networks share.
namespace widelimit::covariance_sde {

/// Threads take paths in groups of at least so many.
inline constexpr Index paths_a_task = 8;

inline void require_bounds(std::string_view where, const StopBounds& bounds) {
  if (!(bounds.lower >= 0 && bounds.upper > bounds.lower))
    throw ArgumentError(fmt::format("{}: stopping bounds must satisfy 0 <= lower < upper, got {} and {}",
                                    where, bounds.lower, bounds.upper));
}

/// Why a path in state v ends now, if it does. The trace bounds the largest eigenvalue from above, so that
/// eigenvalues are only taken where they can matter.
template <typename Square>
std::optional<PathEnd> end_of_path(const Square& v, const StopBounds& bounds) {
  const double trace = v.trace();
  if (!std::isfinite(trace)) return PathEnd::not_finite;
  if (bounds.lower == 0 && trace <= bounds.upper) return std::nullopt;
  const Eigen::SelfAdjointEigenSolver<Square> solver(v, Eigen::EigenvaluesOnly);
  if (!(solver.eigenvalues()(v.rows() - 1) <= bounds.upper)) return PathEnd::above;
  if (bounds.lower > 0 && !(solver.eigenvalues()(0) >= bounds.lower)) return PathEnd::below;
  return std::nullopt;
}

}  // namespace widelimit::covariance_sde
