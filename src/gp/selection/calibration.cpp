#include "widelimit/gp/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/tools/minima.hpp>
#include <cmath>
#include <numbers>
#include <vector>

#include "gp/checks.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/leave_one_out.hpp"

namespace widelimit::gp {
namespace {

using Eigen::Index;

double normal_distribution(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

double normal_density(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi); }

/// The trapezium rule, which converges geometrically: the integrand is analytic and decays as a Gaussian.
struct Trapezium {
  double spacing;
  double reach;
};

// Spacing 1/16 resolves the maximum of thousands of outputs, whose distribution is narrower than one output's;
// Phi(-9.5) = 1e-21.
constexpr Trapezium exact_rule{1.0 / 16, 9.5};
// For a search: 1e-8 of the probabilities of 100 outputs, Phi(-7) = 1e-12, in an eighth of the nodes.
constexpr Trapezium search_rule{3.0 / 8, 7};

// P(c) = int phi(u - s_c) prod_{k != c} Phi(u - s_k) du with s = mean / standard deviation. Only nodes
// around the largest s matter: below them its Phi makes the products vanish, above them the densities of
// all classes have vanished.
Vector<double> probabilities_of_scores(const Vector<double>& scores, const Trapezium& rule) {
  const Index classes = scores.size();
  const double largest = scores.maxCoeff();
  Vector<double> sums = Vector<double>::Zero(classes), below(classes), product_before(classes);
  const int nodes = static_cast<int>(2 * rule.reach / rule.spacing);
  for (int node = 0; node <= nodes; ++node) {
    const double u = largest - rule.reach + rule.spacing * node;
    double product = rule.spacing;
    // The product over all classes but k is that of the classes before k times that of the classes after it: dividing
    // the whole product by Phi(u - s_k) would fail where that is 0.
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

/// Without variance the largest output wins; equal ones share the probability.
Vector<double> certain_probabilities(const Vector<double>& mean) {
  const Vector<double> winners = (mean.array() == mean.maxCoeff()).cast<double>();
  return winners / winners.sum();
}

void require_label(int label, Index i, Index classes, const char* where) {
  if (label < 0 || label >= classes)
    throw ArgumentError(
        fmt::format("{}: labels must be 0 .. {}, but label {} (from 0) is {}", where, classes - 1, i, label));
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
    require_label(labels[static_cast<std::size_t>(i)], i, probabilities.cols(), where);
  }
}

/// The bin with lower < confidence <= upper, as the edges are rounded: a product with the number of bins is rounded to
/// the other side of some. Confidences that rounding leaves above 1 are in the last one.
CalibrationBin& bin_of(std::vector<CalibrationBin>& bins, double confidence) {
  const auto bin = std::ranges::lower_bound(bins, confidence, {}, &CalibrationBin::upper);
  return bin == bins.end() ? bins.back() : *bin;
}

void require_predictions(const Matrix<double>& mean, const Vector<double>& variances, const char* where) {
  if (mean.cols() == 0)
    throw ArgumentError(fmt::format("{}: the means must have at least one column", where));
  require_finite(mean, where, "the means");
  require_test_variances(variances, mean.rows(), where);
}

Matrix<double> probabilities_by(const Trapezium& rule, const Matrix<double>& mean,
                                const Vector<double>& variances) {
  Matrix<double> probabilities(mean.rows(), std::max<Index>(2, mean.cols()));
  for (Index i = 0; i < mean.rows(); ++i) {
    Vector<double> outputs = mean.row(i);
    // One score stands for the difference of two outputs of half its variance each.
    if (mean.cols() == 1) outputs = Eigen::Vector2d(0, mean(i, 0)) * std::numbers::sqrt2;
    outputs.array() -= outputs.maxCoeff();  // the largest is finite whatever it is divided by
    probabilities.row(i) = variances(i) > 0 ? probabilities_of_scores(outputs / std::sqrt(variances(i)), rule)
                                            : certain_probabilities(outputs);
  }
  return probabilities;
}

}  // namespace

Matrix<double> class_probabilities(const Matrix<double>& mean, const Vector<double>& variances) {
  require_predictions(mean, variances, "class_probabilities");
  return probabilities_by(exact_rule, mean, variances);
}

namespace {

/// Mean of -sum_c w_c log p_c with weights 1 - 1 / (n + 2) of the label (Laplace's rule of succession) and equal ones
/// of the others. With a weight of 1, classes that are told apart without an error would drive the scale to infinity.
double smoothed_loss(const Matrix<double>& probabilities, const std::vector<int>& labels) {
  constexpr double least = 1e-300;
  const double others = 1.0 / (static_cast<double>(labels.size()) + 2);
  const double share = others / static_cast<double>(probabilities.cols() - 1);
  double sum = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto logarithms = probabilities.row(static_cast<Index>(i)).array().max(least).log();
    sum -= share * logarithms.sum() + (1 - others - share) * logarithms(labels[i]);
  }
  return sum / static_cast<double>(labels.size());
}

}  // namespace

double probability_scale(const Matrix<double>& mean, const Vector<double>& variances,
                         std::span<const int> labels) {
  constexpr const char* where = "probability_scale";
  require_predictions(mean, variances, where);
  if (mean.rows() != static_cast<Index>(labels.size()) || labels.empty())
    throw ArgumentError(
        fmt::format("{}: expected a row of means for each label and at least one, got {} and {} labels",
                    where, mean.rows(), labels.size()));
  for (std::size_t i = 0; i < labels.size(); ++i)
    require_label(labels[i], static_cast<Index>(i), std::max<Index>(2, mean.cols()), where);
  // Certain predictions do not change with a scale.
  if (!(variances.array() > 0).all()) return 1;
  const std::vector<Index> rows = representative_inputs(mean.rows());
  const Matrix<double> some_means = mean(rows, Eigen::all);
  const Vector<double> some_variances = variances(rows);
  std::vector<int> some_labels;
  for (const Index row : rows) some_labels.push_back(labels[static_cast<std::size_t>(row)]);
  const auto loss = [&](double logarithm) {
    return smoothed_loss(probabilities_by(search_rule, some_means, std::exp(-2 * logarithm) * some_variances),
                         some_labels);
  };
  // A grid finds the valley, which need not be the only one.
  constexpr int steps = 12;
  const double reach = std::log(1e3), step = 2 * reach / steps;
  int best = 0;
  double least = loss(-reach);
  for (int i = 1; i <= steps; ++i)
    if (const double value = loss(-reach + step * i); value < least) {
      best = i;
      least = value;
    }
  const double centre = -reach + step * best;
  constexpr int bits = 14;
  return std::exp(boost::math::tools::brent_find_minima(loss, std::max(-reach, centre - step),
                                                        std::min(reach, centre + step), bits)
                      .first);
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
    // These are still sums: the difference of means, weighted with the bin's share of all inputs
    // ((3) of Guo et al. 2017).
    result.expected_error +=
        std::abs(bin.accuracy - bin.mean_confidence) / static_cast<double>(labels.size());
    bin.mean_confidence /= static_cast<double>(bin.count);
    bin.accuracy /= static_cast<double>(bin.count);
  }
  return result;
}

}  // namespace widelimit::gp
