#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "widelimit/gp/observation_law.hpp"
#include "widelimit/matrix.hpp"

/// Quality of predictions. Rows are test inputs; there must be at least one. All functions throw
/// ArgumentError for shapes that do not fit and for NaN or infinity.
namespace widelimit::gp {

/// Predicted class of each row, or class of each row of targets: the column of the largest entry, the first
/// one of equals; with a single column 1 if it is positive, else 0.
[[nodiscard]] std::vector<int> classes_of(const Matrix<double>& outputs);

/// Share of rows whose class is that of the targets, both by classes_of().
[[nodiscard]] double accuracy(const Matrix<double>& mean, const Matrix<double>& targets);

/// Share of equal entries of two lists of labels.
[[nodiscard]] double accuracy(std::span<const int> predicted, std::span<const int> labels);

/// Mean over all rows and outputs of (mean - target)^2.
[[nodiscard]] double mean_squared_error(const Matrix<double>& mean, const Matrix<double>& targets);

/// -log N(target; mean, variance + noise_variance), summed over the outputs (independent given the inputs,
/// the same variance for each) and averaged over the rows: the density of an observation, so the noise
/// belongs to it. `latent_variances` [n] are posterior variances without noise; each sum of the two must be
/// positive.
[[nodiscard]] double negative_log_predictive_density(const Matrix<double>& mean,
                                                     const Vector<double>& latent_variances,
                                                     double noise_variance, const Matrix<double>& targets);

/// The same if each output has its own variances: `variances` [n, outputs] are those of observations, noise
/// included, and positive. The density is that of `law`, by which outputs are independent.
[[nodiscard]] double negative_log_predictive_density(const Matrix<double>& mean,
                                                     const Matrix<double>& variances,
                                                     const Matrix<double>& targets,
                                                     const ObservationLaw& law = {});

/// Numbers of inputs, [true class, predicted class].
using ConfusionMatrix = Eigen::Matrix<std::int64_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
/// Counts of true and predicted classes, [classes, classes]; labels and predictions are 0 .. classes - 1, equally many
/// of both.
[[nodiscard]] ConfusionMatrix confusion_matrix(std::span<const int> labels, std::span<const int> predicted,
                                               int classes);

}  // namespace widelimit::gp
