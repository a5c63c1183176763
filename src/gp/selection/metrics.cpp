#include "widelimit/gp/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "gp/checks.hpp"
#include "widelimit/error.hpp"

namespace widelimit::gp {
namespace {

using Eigen::Index;

void require_outputs(const Matrix<double>& outputs, const char* where, const char* name) {
  if (outputs.size() == 0)
    throw ArgumentError(fmt::format("{}: {} must have at least one row and one column, got [{}, {}]", where,
                                    name, outputs.rows(), outputs.cols()));
  require_finite(outputs, where, name);
}

void require_pair(const Matrix<double>& mean, const Matrix<double>& targets, const char* where) {
  require_outputs(mean, where, "the means");
  require_shape(targets, mean.rows(), mean.cols(), where, "the targets (as the means)");
  require_finite(targets, where, "the targets");
}

void require_same_length(std::span<const int> predicted, std::span<const int> labels, const char* where) {
  if (predicted.size() != labels.size() || labels.empty())
    throw ArgumentError(
        fmt::format("{}: expected as many predictions as labels and at least one, got {} and {}", where,
                    predicted.size(), labels.size()));
}

}  // namespace

std::vector<int> classes_of(const Matrix<double>& outputs) {
  require_outputs(outputs, "classes_of", "the outputs");
  std::vector<int> classes(static_cast<std::size_t>(outputs.rows()));
  for (Index i = 0; i < outputs.rows(); ++i) {
    Index largest = 0;
    // One output stands for two classes, told apart by its sign.
    if (outputs.cols() == 1)
      largest = outputs(i, 0) > 0 ? 1 : 0;
    else
      outputs.row(i).maxCoeff(&largest);
    classes[static_cast<std::size_t>(i)] = static_cast<int>(largest);
  }
  return classes;
}

double accuracy(const Matrix<double>& mean, const Matrix<double>& targets) {
  require_pair(mean, targets, "accuracy");
  return accuracy(classes_of(mean), classes_of(targets));
}

double accuracy(std::span<const int> predicted, std::span<const int> labels) {
  require_same_length(predicted, labels, "accuracy");
  std::size_t right = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) right += predicted[i] == labels[i] ? 1 : 0;
  return static_cast<double>(right) / static_cast<double>(labels.size());
}

double mean_squared_error(const Matrix<double>& mean, const Matrix<double>& targets) {
  require_pair(mean, targets, "mean_squared_error");
  return (mean - targets).squaredNorm() / static_cast<double>(mean.size());
}

double negative_log_predictive_density(const Matrix<double>& mean, const Vector<double>& latent_variances,
                                       double noise_variance, const Matrix<double>& targets) {
  constexpr const char* where = "negative_log_predictive_density";
  require_pair(mean, targets, where);
  require_test_variances(latent_variances, mean.rows(), where);
  if (!(noise_variance >= 0) || !std::isfinite(noise_variance))
    throw ArgumentError(
        fmt::format("{}: the noise variance must be finite and not negative, got {}", where, noise_variance));
  const auto outputs = static_cast<double>(mean.cols());
  // Outputs of an input share its variance: the density is that of a Gaussian in all of them.
  double sum = 0;
  for (Index i = 0; i < mean.rows(); ++i) {
    const double variance = latent_variances(i) + noise_variance;
    if (variance == 0)
      throw ArgumentError(
          fmt::format("{}: test input {} has variance 0 and so does the noise: there is no density; "
                      "give the noise variance of the observations",
                      where, i));
    sum += 0.5 * (outputs * std::log(2 * std::numbers::pi * variance) +
                  (mean.row(i) - targets.row(i)).squaredNorm() / variance);
  }
  return sum / static_cast<double>(mean.rows());
}

double negative_log_predictive_density(const Matrix<double>& mean, const Matrix<double>& variances,
                                       const Matrix<double>& targets, const ObservationLaw& law) {
  constexpr const char* where = "negative_log_predictive_density";
  require_pair(mean, targets, where);
  require_shape(variances, mean.rows(), mean.cols(), where, "the variances (as the means)");
  require_finite(variances, where, "the variances");
  // Outputs that share variances, as those of classes do, take the code that one vector of variances
  // takes, with the same bits.
  if (law == ObservationLaw() && variances == variances.col(0).replicate(1, variances.cols()))
    return negative_log_predictive_density(mean, variances.col(0), 0, targets);
  if (!(variances.array() > 0).all())
    throw ArgumentError(fmt::format("{}: the variances of observations must be positive, the smallest is {}",
                                    where, variances.minCoeff()));
  if (law != ObservationLaw()) {
    double sum = 0;
    for (Index i = 0; i < mean.rows(); ++i)
      for (Index k = 0; k < mean.cols(); ++k)
        sum -= law.log_density(targets(i, k), mean(i, k), variances(i, k));
    return sum / static_cast<double>(mean.rows());
  }
  const auto terms = (2 * std::numbers::pi * variances.array()).log() +
                     (mean - targets).array().square() / variances.array();
  return 0.5 * terms.sum() / static_cast<double>(mean.rows());
}

ConfusionMatrix confusion_matrix(std::span<const int> labels, std::span<const int> predicted, int classes) {
  constexpr const char* where = "confusion_matrix";
  require_same_length(predicted, labels, where);
  if (classes < 1) throw ArgumentError(fmt::format("{}: classes must be positive, got {}", where, classes));
  ConfusionMatrix counts = ConfusionMatrix::Zero(classes, classes);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (std::min(labels[i], predicted[i]) < 0 || std::max(labels[i], predicted[i]) >= classes)
      throw ArgumentError(
          fmt::format("{}: classes must be 0 .. {}, but input {} has label {} and prediction {}", where,
                      classes - 1, i, labels[i], predicted[i]));
    ++counts(labels[i], predicted[i]);
  }
  return counts;
}

}  // namespace widelimit::gp
