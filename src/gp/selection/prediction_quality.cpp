#include "widelimit/gp/prediction_quality.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "widelimit/error.hpp"
#include "widelimit/gp/calibration.hpp"
#include "widelimit/gp/metrics.hpp"

namespace widelimit::gp {
namespace {

/// The classes of probabilities, of which one column is no score of two.
std::vector<int> most_probable(const Matrix<double>& probabilities) {
  std::vector<int> classes;
  for (Index i = 0; i < probabilities.rows(); ++i) {
    Index largest = 0;
    probabilities.row(i).maxCoeff(&largest);
    classes.push_back(static_cast<int>(largest));
  }
  return classes;
}

/// Probabilities of one class as those of two: it or another one.
double class_wise_error(const Vector<double>& probability, const std::vector<bool>& is_class) {
  constexpr std::size_t bins = 15;
  std::array<double, bins> differences{};
  for (std::size_t i = 0; i < is_class.size(); ++i) {
    const double p = probability(static_cast<Index>(i));
    const auto above = static_cast<std::size_t>(std::ceil(p * bins));
    differences.at(std::clamp<std::size_t>(above, 1, bins) - 1) += p - (is_class[i] ? 1 : 0);
  }
  double sum = 0;
  for (const double difference : differences) sum += std::abs(difference);
  return sum / static_cast<double>(is_class.size());
}

ClassQuality quality_of_class(const Matrix<double>& probabilities, std::span<const int> labels,
                              std::span<const int> predicted, int c) {
  std::vector<bool> is_class;
  Index inputs = 0, found = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    is_class.push_back(labels[i] == c);
    inputs += labels[i] == c ? 1 : 0;
    found += labels[i] == c && predicted[i] == c ? 1 : 0;
  }
  const Vector<double> probability = probabilities.col(c);
  ClassQuality quality{.inputs = inputs,
                       .share = static_cast<double>(inputs) / static_cast<double>(labels.size()),
                       .mean_probability = probability.mean(),
                       .calibration_error = class_wise_error(probability, is_class),
                       .recall = std::nullopt,
                       .area_under_curve = area_under_curve(
                           {probability.data(), static_cast<std::size_t>(probability.size())}, is_class)};
  if (inputs > 0) quality.recall = static_cast<double>(found) / static_cast<double>(inputs);
  return quality;
}

std::optional<double> mean_area(const std::vector<ClassQuality>& classes) {
  double sum = 0;
  int count = 0;
  for (const ClassQuality& one : classes)
    if (one.area_under_curve) {
      sum += *one.area_under_curve;
      ++count;
    }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

}  // namespace

std::optional<double> area_under_curve(std::span<const double> scores, const std::vector<bool>& labels) {
  if (scores.size() != labels.size())
    throw ArgumentError(fmt::format("area_under_curve: expected as many scores as labels, got {} and {}",
                                    scores.size(), labels.size()));
  if (std::ranges::any_of(scores, [](double score) { return std::isnan(score); }))
    throw ArgumentError("area_under_curve: a score is NaN");
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return scores[i]; });
  // Pairs that are ordered rightly: each input with the label true comes after those with false before it.
  double pairs = 0, before = 0, positive = 0;
  for (std::size_t first = 0; first < order.size();) {
    double equal_false = 0, equal_true = 0;
    std::size_t last = first;
    for (; last < order.size() && scores[order[last]] == scores[order[first]]; ++last)
      (labels[order[last]] ? equal_true : equal_false) += 1;
    pairs += equal_true * (before + equal_false / 2);
    before += equal_false;
    positive += equal_true;
    first = last;
  }
  if (before == 0 || positive == 0) return std::nullopt;
  return pairs / (before * positive);
}

ClassesQuality classes_quality(const Matrix<double>& probabilities, std::span<const int> labels) {
  ClassesQuality quality{};
  quality.expected_calibration_error = calibration(probabilities, labels).expected_error;
  const std::vector<int> predicted = most_probable(probabilities);
  quality.accuracy = accuracy(predicted, labels);
  const auto n = static_cast<double>(labels.size());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto row = probabilities.row(static_cast<Index>(i));
    const double right = row(labels[i]);
    quality.log_loss -= std::log(std::max(right, std::numeric_limits<double>::epsilon())) / n;
    quality.brier_score += (row.squaredNorm() - 2 * right + 1) / n;
  }
  for (int c = 0; c < probabilities.cols(); ++c)
    quality.classes.push_back(quality_of_class(probabilities, labels, predicted, c));
  quality.area_under_curve = mean_area(quality.classes);
  return quality;
}

NumbersQuality numbers_quality(const Matrix<double>& mean, const Matrix<double>& variances,
                               const Matrix<double>& targets, const ObservationLaw& law) {
  NumbersQuality quality{
      .mean_squared_error = mean_squared_error(mean, targets),
      .determination = std::nullopt,
      .negative_log_predictive_density = negative_log_predictive_density(mean, variances, targets, law),
      .coverage = {}};
  Matrix<double> distances(mean.rows(), mean.cols());
  for (Index i = 0; i < mean.rows(); ++i)
    for (Index k = 0; k < mean.cols(); ++k)
      distances(i, k) = std::abs(law.distance(targets(i, k), mean(i, k), variances(i, k)));
  for (std::size_t k = 0; k < interval_percents.size(); ++k) {
    const double half_width = law.half_width(interval_percents[k] / 100.0);
    quality.coverage[k] = (distances.array() <= half_width).cast<double>().mean();
  }
  double sum = 0;
  for (Index c = 0; c < targets.cols(); ++c) {
    // Rounding of the mean leaves a spread to equal numbers.
    if (targets.col(c).minCoeff() == targets.col(c).maxCoeff()) return quality;
    const double spread = (targets.col(c).array() - targets.col(c).mean()).matrix().squaredNorm();
    sum += 1 - (mean.col(c) - targets.col(c)).squaredNorm() / spread;
  }
  quality.determination = sum / static_cast<double>(targets.cols());
  return quality;
}

PredictionQuality prediction_quality(const Matrix<double>& mean, const Matrix<double>& variances,
                                     const Matrix<double>& probabilities, const Matrix<double>& targets,
                                     const ObservationLaw& law) {
  PredictionQuality quality;
  if (probabilities.size() > 0)
    quality.classes = classes_quality(probabilities, classes_of(targets));
  else
    quality.numbers = numbers_quality(mean, variances, targets, law);
  return quality;
}

}  // namespace widelimit::gp
