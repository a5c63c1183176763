#pragma once

#include "widelimit/covariance_sde/model.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::covariance_sde {

/// V_T of the drift alone, dV = b(V) dt, by Dormand-Prince with the given relative tolerance.
///
/// Errors  ArgumentError unless v0 is a covariance and time >= 0; NumericalError if it explodes before T, as the cubic
///         attention drift does: an entry passes 1e12 (times the largest of the start if that is above 1), or steps
///         become so short that time stands still.
[[nodiscard]] Matrix<double> drift_flow(const SdeModel& model, const Matrix<double>& v0, double time,
                                        double relative_tolerance = 1e-11);

/// The shortcut of the residual network with gamma = 1 / sqrt(depth).
enum class Shortcut {
  unit,                 ///< lambda = 1: variances grow as e^t.
  variance_preserving,  ///< lambda^2 = 1 - 1 / depth: variances stay constant.
};

/// V at time t = layer / depth of the unshaped ReLU residual network with gamma = 1 / sqrt(depth). Its limits
/// of width and depth commute and the result is deterministic: d rho / dt = (sqrt(1 - rho^2) - rho arccos
/// rho) / pi.
///
/// Errors  ArgumentError unless v0 is a covariance and time >= 0.
/// Source  docs/theory/covariance-sde.md, section 7.5.
[[nodiscard]] Matrix<double> commuting_limit(const Matrix<double>& v0, double time, Shortcut shortcut);

}  // namespace widelimit::covariance_sde
