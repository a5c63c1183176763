#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "widelimit/gp/leave_one_out.hpp"
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

/// How scores of observations become probabilities of classes: with z_c = mean_c / sqrt(variance),
///     P(c) = softmax_c(scale z_c + shift_c).
/// A single score z stands for -z / 2 of class 0 and z / 2 of class 1. Regression of labels has equal outputs of one
/// variance for all classes: alone it gives a rare class too much and cannot learn how rare it is.
struct ClassCalibration {
  double scale = 1;            ///< Not negative.
  Vector<double> shifts = {};  ///< [classes], of sum 0; empty: none, probabilities are class_probabilities().

  /// [n, classes], for arguments as class_probabilities() takes them, with its errors. The most probable class is that
  /// of the largest mean but where shifts, in favour of frequent classes, decide otherwise.
  [[nodiscard]] Matrix<double> probabilities(const Matrix<double>& mean,
                                             const Vector<double>& variances) const;
};

/// A calibration, and its mean log loss, without the prior.
struct ClassCalibrationFit {
  ClassCalibration calibration;
  double log_loss;
};

/// The calibration for which the classes of inputs that were left out of the training are most likely: multinomial
/// logistic regression on their scores, with scale >= 0 and shifts of a normal prior of the highest evidence, or none.
///
/// mean, variances  of the observations left out, see LeaveOneOut; labels 0 .. classes - 1 are their true classes
/// counts      inputs of each class that the labels represent, by which classes are weighted; empty: the labels' own
/// shares      how much each of them counts; empty: 1
/// Method      mean of -log P(c) of the true classes c, with an exponential prior of the scale, of the rate 1 for
///             scores of root mean square 1, so that separated classes do not drive it to infinity. L-BFGS; evidence
///             by Laplace's method. Without calibration where a variance is 0.
/// Errors      those of class_probabilities(); ArgumentError for labels and counts that do not fit.
/// Source      Guo et al. 2017, section 4.2 (vector scaling with one scale). Measured: docs/inference.md.
[[nodiscard]] ClassCalibrationFit fit_class_calibration(const Matrix<double>& mean,
                                                        const Vector<double>& variances,
                                                        std::span<const int> labels,
                                                        const Vector<double>& counts = {},
                                                        const Vector<double>& shares = {});

/// The same from predictions of representative_inputs(), and the targets of all inputs.
[[nodiscard]] ClassCalibrationFit fit_class_calibration(const LeaveOneOut& others,
                                                        const Matrix<double>& targets);

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
