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

/// Logarithms of targets [n, outputs], "training" or "validation" ones. ArgumentError for a number that is not
/// positive.
[[nodiscard]] Matrix<double> logarithms(const Matrix<double>& targets, const char* which);

/// Mean and variance of a function in the units of the targets, [n, outputs] both, from those of its logarithm. The
/// function is the mean of observations y = exp(logarithm + noise) at an input, with normal noise of this variance,
/// [outputs], all deviations times `scale`, that of the law. NumericalError, naming the row, for means outside 1e-150
/// to 1e150, whose squares double cannot hold.
void take_from_logarithms(Matrix<double>& mean, Matrix<double>& variance, const Vector<double>& noise,
                          double scale);

/// The same of values of the logarithm, [n, outputs], and the noise times the squared scale.
void take_from_logarithms(Matrix<double>& values, const Vector<double>& noise);

}  // namespace widelimit::gp
