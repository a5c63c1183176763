#include "widelimit/gp/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "gp/checks.hpp"
#include "widelimit/error.hpp"

namespace widelimit::gp {
namespace {

using Eigen::Index;

double normal_distribution(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

double normal_density(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi); }

// The trapezium rule converges geometrically: the integrand is analytic and decays as a Gaussian. Spacing
// 1/16 resolves the maximum of thousands of outputs, whose distribution is narrower than one output's.
constexpr double spacing = 1.0 / 16;
constexpr double reach = 9.5;  // Phi(-9.5) = 1e-21

// P(c) = int phi(u - s_c) prod_{k != c} Phi(u - s_k) du with s = mean / standard deviation. Around the
// largest s only: below, its Phi makes the product vanish; above, the density of every class has.
Vector<double> probabilities_of_scores(const Vector<double>& scores) {
  const Index classes = scores.size();
  const double largest = scores.maxCoeff();
  Vector<double> sums = Vector<double>::Zero(classes), below(classes), product_before(classes);
  const int nodes = static_cast<int>(2 * reach / spacing);
  for (int node = 0; node <= nodes; ++node) {
    const double u = largest - reach + spacing * node;
    double product = spacing;
    for (Index k = 0; k < classes; ++k) {
      below(k) = normal_distribution(u - scores(k));
      product_before(k) = product;
      product *= below(k);
    }
    product = 1;
    for (Index k = classes - 1; k >= 0; --k) {
      sums(k) += normal_density(u - scores(k)) * product_before(k) * product;
      product *= below(k);
    }
  }
  return sums / sums.sum();  // Rounding would leave some above 1.
}

Vector<double> certain_probabilities(const Vector<double>& mean) {
  const Vector<double> winners = (mean.array() == mean.maxCoeff()).cast<double>();
  return winners / winners.sum();
}

void require_probabilities(const Matrix<double>& probabilities, std::span<const int> labels, int bins) {
  constexpr const char* where = "calibration";
  if (bins < 1) throw ArgumentError(fmt::format("{}: bins must be positive, got {}", where, bins));
  if (probabilities.size() == 0 || probabilities.rows() != static_cast<Index>(labels.size()))
    throw ArgumentError(
        fmt::format("{}: expected a row of probabilities for each label and at least one, got [{}, {}] "
                    "and {} labels",
                    where, probabilities.rows(), probabilities.cols(), labels.size()));
  require_finite(probabilities, where, "the probabilities");
  for (Index i = 0; i < probabilities.rows(); ++i) {
    const auto row = probabilities.row(i);
    if (row.minCoeff() < 0 || row.maxCoeff() > 1 + 1e-6 || std::abs(row.sum() - 1) > 1e-6)
      throw ArgumentError(
          fmt::format("{}: each row must be probabilities with sum 1, but row {} lies in [{}, {}] and "
                      "has sum {}",
                      where, i, row.minCoeff(), row.maxCoeff(), row.sum()));
    const int label = labels[static_cast<std::size_t>(i)];
    if (label < 0 || label >= probabilities.cols())
      throw ArgumentError(fmt::format("{}: labels must be 0 .. {}, but label {} (from 0) is {}", where,
                                      probabilities.cols() - 1, i, label));
  }
}

/// The bin with lower < confidence <= upper, as the edges are rounded: a product with the number of bins is rounded to the
/// other side of some. Confidences that rounding leaves above 1 are in the last one.
CalibrationBin& bin_of(std::vector<CalibrationBin>& bins, double confidence) {
  const auto bin = std::ranges::lower_bound(bins, confidence, {}, &CalibrationBin::upper);
  return bin == bins.end() ? bins.back() : *bin;
}

}  // namespace

Matrix<double> class_probabilities(const Matrix<double>& mean, const Vector<double>& variances) {
  constexpr const char* where = "class_probabilities";
  if (mean.cols() == 0)
    throw ArgumentError(fmt::format("{}: the means must have at least one column", where));
  require_finite(mean, where, "the means");
  require_test_variances(variances, mean.rows(), where);
  Matrix<double> probabilities(mean.rows(), std::max<Index>(2, mean.cols()));
  for (Index i = 0; i < mean.rows(); ++i) {
    Vector<double> outputs = mean.row(i);
    // One score stands for the difference of two outputs of half its variance each.
    if (mean.cols() == 1) outputs = Eigen::Vector2d(0, mean(i, 0)) * std::numbers::sqrt2;
    outputs.array() -= outputs.maxCoeff();  // the largest is finite whatever it is divided by
    probabilities.row(i) = variances(i) > 0 ? probabilities_of_scores(outputs / std::sqrt(variances(i)))
                                            : certain_probabilities(outputs);
  }
  return probabilities;
}

Calibration calibration(const Matrix<double>& probabilities, std::span<const int> labels, int bins) {
  require_probabilities(probabilities, labels, bins);
  Calibration result{{}, 0};
  for (int b = 0; b < bins; ++b)
    result.bins.push_back({static_cast<double>(b) / bins, static_cast<double>(b + 1) / bins, 0, 0, 0});
  for (Index i = 0; i < probabilities.rows(); ++i) {
    Index predicted = 0;
    const double confidence = probabilities.row(i).maxCoeff(&predicted);
    CalibrationBin& bin = bin_of(result.bins, confidence);
    ++bin.count;
    bin.mean_confidence += confidence;
    bin.accuracy += predicted == labels[static_cast<std::size_t>(i)] ? 1 : 0;
  }
  for (CalibrationBin& bin : result.bins) {
    if (bin.count == 0) continue;
    result.expected_error +=
        std::abs(bin.accuracy - bin.mean_confidence) / static_cast<double>(labels.size());
    bin.mean_confidence /= static_cast<double>(bin.count);
    bin.accuracy /= static_cast<double>(bin.count);
  }
  return result;
}

}  // namespace widelimit::gp
