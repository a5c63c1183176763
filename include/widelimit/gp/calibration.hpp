#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// Class probabilities of a regression posterior, [n, classes]: the probability that the output of a class is the
/// largest of all, the outputs being independent Gaussians with the means of the row and its common variance. With z
/// standard normal,
///     P(c) = E_z prod_{k != c} Phi(z + (mean_c - mean_k) / sqrt(variance)),
/// by the trapezium rule; each row sums to 1 up to rounding. A single column is the score of class 1 against class 0:
/// P(1) = Phi(mean / sqrt(variance)), and two columns are returned. This follows from the posterior alone: without a
/// temperature, and without a link function that the regression never saw.
///
/// mean       [n, outputs], finite, at least one column
/// variances  [n], >= 0: with posterior variances the probabilities are about the latent outputs; add the noise
///            variance for those of observations. Variance 0 gives the largest mean probability 1, equal ones share it.
/// Accuracy   1e-12 absolute for up to 1000 classes. Cost 305 outputs error functions a row.
/// Errors     ArgumentError for shapes, NaN or infinity, negative variances.
[[nodiscard]] Matrix<double> class_probabilities(const Matrix<double>& mean, const Vector<double>& variances);

/// The factor s on scores mean / sqrt(variance) for which the class probabilities of inputs that were left out of the
/// training are most likely: those of class_probabilities(mean, variances / s^2). Gaussian regression of labels is
/// overconfident if its noise is small, or a class rare; no factor changes which class is the most probable.
///
/// mean, variances  of the observations left out, see LeaveOneOut; labels 0 .. classes - 1 are their true classes
/// Method      minimises the mean negative logarithm of the probabilities over s from 1e-3 to 1e3 by Brent's method. As
///             in Platt's scaling each label counts as 1 - 1 / (n + 2) and the others share the rest, so that perfectly
///             separated data do not drive s to infinity. Of more than 1,000 inputs, 1,000 evenly spaced ones are used.
///             1 if a variance is 0. Errors are those of class_probabilities() and of calibration().
/// Source      Guo et al. 2017, section 4.2 (temperature scaling); Platt 1999, Probabilistic outputs for support vector
///             machines, equation 4, for the labels.
[[nodiscard]] double probability_scale(const Matrix<double>& mean, const Vector<double>& variances,
                                       std::span<const int> labels);

/// Predictions whose confidence (the largest class probability) lies in one interval.
struct CalibrationBin {
  double lower;            ///< exclusive, except for the first bin
  double upper;            ///< inclusive
  std::int64_t count;      ///< predictions in it
  double mean_confidence;  ///< 0 if there are none
  double accuracy;         ///< share of them that are right; 0 if there are none
};

/// How well confidences agree with accuracies.
struct Calibration {
  std::vector<CalibrationBin> bins;  ///< equal widths over [0, 1]: what a reliability diagram shows
  double expected_error;             ///< sum over bins of count / n |accuracy - mean confidence|
};

/// Expected calibration error of class probabilities [n, classes] for the true labels 0 .. classes - 1. The prediction
/// is the most probable class, the first of equals. ArgumentError unless there is a row, each row lies in [0, 1] and
/// sums to 1 within 1e-6, labels fit and bins >= 1.
///
/// Source  Guo et al. 2017, On calibration of modern neural networks, equation 3.
[[nodiscard]] Calibration calibration(const Matrix<double>& probabilities, std::span<const int> labels,
                                      int bins = 15);

}  // namespace widelimit::gp
