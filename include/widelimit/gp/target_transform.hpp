#pragma once

#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// What is fitted in place of targets that are numbers.
enum class TargetTransform {
  none,
  /// Their natural logarithms, of targets that are all positive: prices, durations, concentrations. Noise is a share of
  /// the target then, and predictions are positive. Means and variances are given in the units of the targets, as those
  /// of a log-normal distribution: ObservationLaw::of_logarithms.
  log
};

/// Logarithms of targets [n, outputs]. ArgumentError, preceded by `where`, for a number that is not positive.
[[nodiscard]] Matrix<double> logarithms(const Matrix<double>& targets, const char* where);

/// Mean and variance of a function in the units of the targets, [n, outputs] both, from those of its logarithm. The
/// function is the mean of observations y = exp(logarithm + noise) at an input, with normal noise of this variance,
/// [outputs]. NumericalError for means that double cannot hold.
void take_from_logarithms(Matrix<double>& mean, Matrix<double>& variance, const Vector<double>& noise);

/// The same of values of the logarithm, [n, outputs].
void take_from_logarithms(Matrix<double>& values, const Vector<double>& noise);

}  // namespace widelimit::gp
