#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "widelimit/gp/observation_law.hpp"
#include "widelimit/index.hpp"
#include "widelimit/matrix.hpp"

/// What a person needs to decide by predictions for inputs with known targets.
namespace widelimit::gp {

/// The probabilities of the central intervals of a prediction that people are shown, in percent.
inline constexpr std::array<int, 3> interval_percents{50, 90, 95};

/// How good the probabilities of one class are.
struct ClassQuality {
  Index inputs;             ///< Of this class.
  double share;             ///< Of all inputs.
  double mean_probability;  ///< Over all inputs: where calibrated, the share.
  /// Over 15 bins of the probability of this class, the mean difference of probability and share, weighted by inputs
  /// (class-wise calibration error, Nixon et al. 2019, Measuring calibration in deep learning).
  double calibration_error;
  std::optional<double> recall;            ///< Share of its inputs that are predicted so; none without any.
  std::optional<double> area_under_curve;  ///< Against all others; none without inputs of both.
};

/// How good class probabilities are.
struct ClassesQuality {
  double accuracy;
  double log_loss;  ///< Mean of -log P(true class), probabilities below 2^-52 counted as that.
  double
      brier_score;  ///< Mean of the sum over classes of (P - [true class])^2: 0 to 2, of two classes as well.
  std::optional<double> area_under_curve;  ///< Mean over the classes that have one.
  double expected_calibration_error;
  std::vector<ClassQuality> classes;
};

/// How good numbers with variances are.
struct NumbersQuality {
  double mean_squared_error;
  /// 1 - squared errors / squared distances of the targets from their mean; of several outputs the mean. None where an
  /// output has equal targets only.
  std::optional<double> determination;
  double negative_log_predictive_density;  ///< As of metrics.hpp.
  /// The share of targets, of all outputs together, in the central interval of each of interval_percents.
  std::array<double, interval_percents.size()> coverage;
};

/// Of classes or of numbers.
struct PredictionQuality {
  std::optional<ClassesQuality> classes = {};
  std::optional<NumbersQuality> numbers = {};
};

/// Probability that a random input with the label true has a larger score than one with false, equal ones counting half
/// (Mann-Whitney); nothing without inputs of both. ArgumentError for lengths that differ and for NaN.
[[nodiscard]] std::optional<double> area_under_curve(std::span<const double> scores,
                                                     const std::vector<bool>& labels);

/// Of class probabilities [n, classes], for which calibration() has the errors; labels are 0 .. classes - 1.
[[nodiscard]] ClassesQuality classes_quality(const Matrix<double>& probabilities,
                                             std::span<const int> labels);

/// Of means and variances of observations, both [n, outputs], and their law, with the errors of
/// negative_log_predictive_density().
[[nodiscard]] NumbersQuality numbers_quality(const Matrix<double>& mean, const Matrix<double>& variances,
                                             const Matrix<double>& targets, const ObservationLaw& law = {});

/// Of classes where there are probabilities, else of numbers.
[[nodiscard]] PredictionQuality prediction_quality(const Matrix<double>& mean,
                                                   const Matrix<double>& variances,
                                                   const Matrix<double>& probabilities,
                                                   const Matrix<double>& targets,
                                                   const ObservationLaw& law = {});

}  // namespace widelimit::gp
