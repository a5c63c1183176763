#include "widelimit/gp/calibration.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numbers>
#include <utility>
#include <vector>

#include "gp/checks.hpp"
#include "gp/selection/convex_minimum.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/metrics.hpp"

namespace widelimit::gp {
namespace {

using Eigen::Index;

double normal_distribution(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

double normal_density(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi); }

// The trapezium rule, which converges geometrically: the integrand is analytic and decays as a Gaussian. Spacing 1/16
// resolves the maximum of thousands of outputs, whose distribution is narrower than one output's; Phi(-9.5) = 1e-21.
constexpr double node_spacing = 1.0 / 16, node_reach = 9.5;

// P(c) = int phi(u - s_c) prod_{k != c} Phi(u - s_k) du with s = mean / standard deviation. Only nodes
// around the largest s matter: below them its Phi makes the products vanish, above them the densities of
// all classes have vanished.
Vector<double> probabilities_of_scores(const Vector<double>& scores) {
  const Index classes = scores.size();
  const double largest = scores.maxCoeff();
  Vector<double> sums = Vector<double>::Zero(classes), below(classes), product_before(classes);
  const int nodes = static_cast<int>(2 * node_reach / node_spacing);
  for (int node = 0; node <= nodes; ++node) {
    const double u = largest - node_reach + node_spacing * node;
    double product = node_spacing;
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

}  // namespace

Matrix<double> class_probabilities(const Matrix<double>& mean, const Vector<double>& variances) {
  require_predictions(mean, variances, "class_probabilities");
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

namespace {

/// z [n, classes]: means in standard deviations; one score stands for its halves, of both signs.
Matrix<double> scores_of(const Matrix<double>& mean, const Vector<double>& variances) {
  Matrix<double> scores = variances.cwiseSqrt().cwiseInverse().asDiagonal() * mean;
  if (scores.cols() > 1) return scores;
  Matrix<double> both(scores.rows(), 2);
  both << -scores / 2, scores / 2;
  return both;
}

/// Replaces rows of logits by the logarithms of their softmax.
void take_log_softmax(Matrix<double>& logits) {
  for (Index i = 0; i < logits.rows(); ++i) {
    auto row = logits.row(i).array();
    row -= row.maxCoeff();
    row -= std::log(row.exp().sum());
  }
}

/// `shares` is empty where each label counts once.
Vector<double> counts_of(std::span<const int> labels, const Vector<double>& shares, Index classes) {
  Vector<double> counts = Vector<double>::Zero(classes);
  for (std::size_t i = 0; i < labels.size(); ++i)
    counts(labels[i]) += shares.size() > 0 ? shares(static_cast<Index>(i)) : 1;
  return counts;
}

/// Of a matrix that is positive semidefinite; directions without curvature, those of scores that are all 0, count
/// with a constant.
double log_determinant(Matrix<double> matrix) {
  constexpr double least = 1e-9;
  matrix.diagonal().array() += least;
  return matrix.ldlt().vectorD().array().max(least).log().sum();
}

/// The loss of fit_class_calibration() and its derivatives, for scores in units of their root mean square.
class CalibrationLoss {
 public:
  CalibrationLoss(Matrix<double> scores, std::span<const int> labels, const Vector<double>& counts,
                  const Vector<double>& shares)
      : unit_{unit_of(scores, shares)},
        scores_{scores / unit_},
        weights_{Matrix<double>::Zero(scores.rows(), scores.cols())} {
    const Vector<double> seen = counts_of(labels, shares, scores_.cols());
    rows_ = seen.sum();
    for (Index i = 0; i < scores_.rows(); ++i) {
      const int label = labels[static_cast<std::size_t>(i)];
      // A row stands for as many inputs of its class as there are for each that is seen.
      weights_(i, label) = (shares.size() > 0 ? shares(i) : 1) * counts(label) / (seen(label) * counts.sum());
    }
  }

  [[nodiscard]] double rows() const { return rows_; }
  [[nodiscard]] Index classes() const { return scores_.cols(); }

  /// parameters: the scale, then the shifts. `slopes` takes the derivatives, unless it is empty.
  double operator()(const std::vector<double>& parameters, std::vector<double>& slopes) const {
    const Eigen::Map<const Vector<double>> shifts(parameters.data() + 1, scores_.cols());
    Matrix<double> logarithms = (parameters[0] * scores_).rowwise() + shifts.transpose();
    take_log_softmax(logarithms);
    const double loss = -weights_.cwiseProduct(logarithms).sum();
    if (slopes.empty()) return loss;
    const Vector<double> rows = weights_.rowwise().sum();
    const Matrix<double> difference = rows.asDiagonal() * logarithms.array().exp().matrix() - weights_;
    slopes[0] = difference.cwiseProduct(scores_).sum();
    Eigen::Map<Vector<double>>(slopes.data() + 1, scores_.cols()) = difference.colwise().sum().transpose();
    return loss;
  }

  /// The matrix [1 + classes, 1 + classes] of second derivatives.
  [[nodiscard]] Matrix<double> curvature(const std::vector<double>& parameters) const {
    const Eigen::Map<const Vector<double>> shifts(parameters.data() + 1, classes());
    Matrix<double> probabilities = (parameters[0] * scores_).rowwise() + shifts.transpose();
    take_log_softmax(probabilities);
    probabilities = probabilities.array().exp();
    const Vector<double> weights = weights_.rowwise().sum();
    // Of a row with the scores z and probabilities p: (z, I)^T (diag(p) - p p^T) (z, I).
    const Matrix<double> weighted = weights.asDiagonal() * probabilities;
    const Vector<double> means = probabilities.cwiseProduct(scores_).rowwise().sum();
    Matrix<double> found(1 + classes(), 1 + classes());
    found(0, 0) = weighted.cwiseProduct(scores_).cwiseProduct(scores_).sum() - weights.dot(means.cwiseAbs2());
    found.col(0).tail(classes()) =
        (weighted.cwiseProduct(scores_) - means.asDiagonal() * weighted).colwise().sum().transpose();
    found.row(0).tail(classes()) = found.col(0).tail(classes()).transpose();
    found.bottomRightCorner(classes(), classes()) = -probabilities.transpose() * weighted;
    found.diagonal().tail(classes()) += weighted.colwise().sum().transpose();
    return found;
  }

  [[nodiscard]] ClassCalibration calibration_of(const std::vector<double>& parameters) const {
    Vector<double> shifts = Eigen::Map<const Vector<double>>(parameters.data() + 1, scores_.cols());
    shifts.array() -= shifts.mean();
    return {parameters[0] / unit_, std::move(shifts)};
  }

 private:
  /// Their root mean square.
  static double unit_of(const Matrix<double>& scores, const Vector<double>& shares) {
    double unit = scores.stableNorm() / std::sqrt(static_cast<double>(scores.size()));
    if (shares.size() > 0)
      unit = (shares.cwiseSqrt().asDiagonal() * scores).stableNorm() /
             std::sqrt(shares.sum() * static_cast<double>(scores.cols()));
    return unit > 0 && std::isfinite(unit) ? unit : 1;
  }

  double unit_;
  Matrix<double> scores_;
  Matrix<double> weights_;  ///< Of sum 1; 0 for classes that are not the true one.
  double rows_ = 0;
};

constexpr double largest_shift = 50;  // e^50 to one
// Scores that say nothing, or the opposite where few labels are left out, still order classes of one frequency.
constexpr double least_scale = 1e-3, largest_scale = 1e3;

/// The rate of the exponential prior of the scale, without which classes that scores separate would drive it to
/// infinity. On ten tables 0.3 and 1 were alike, and 3 was worse.
constexpr double scale_rate = 1;

/// Parameters, and the logarithm of their evidence: the integral over them by Laplace's method, up to a constant.
struct WeighedCalibration {
  std::vector<double> parameters;
  double log_evidence;
};

/// Calibrations whose shifts have independent normal priors of one precision.
WeighedCalibration with_shifts(const CalibrationLoss& loss, double precision, std::vector<double> start) {
  const double rows = loss.rows();
  const Index classes = loss.classes();
  const auto with_prior = [&](const std::vector<double>& parameters, std::vector<double>& slopes) {
    const Eigen::Map<const Vector<double>> shifts(parameters.data() + 1, classes);
    const double value = loss(parameters, slopes) + precision / (2 * rows) * shifts.squaredNorm() +
                         scale_rate / rows * parameters[0];
    if (!slopes.empty()) slopes[0] += scale_rate / rows;
    if (!slopes.empty()) Eigen::Map<Vector<double>>(slopes.data() + 1, classes) += precision / rows * shifts;
    return value;
  };
  std::vector<double> lower(start.size(), -largest_shift), upper(start.size(), largest_shift);
  lower[0] = least_scale;
  upper[0] = largest_scale;
  WeighedCalibration found{
      convex_minimum(
          with_prior, std::move(start),
          {.tolerance = 1e-15, .evaluations = 500, .lower = std::move(lower), .upper = std::move(upper)}),
      0};
  Matrix<double> curvature = rows * loss.curvature(found.parameters);
  curvature.diagonal().tail(classes).array() += precision;
  std::vector<double> no_slopes;
  found.log_evidence = -rows * with_prior(found.parameters, no_slopes) +
                       0.5 * static_cast<double>(classes) * std::log(precision) -
                       0.5 * log_determinant(std::move(curvature));
  return found;
}

/// The limit of high precision.
WeighedCalibration without_shifts(const CalibrationLoss& loss) {
  std::vector<double> parameters(static_cast<std::size_t>(1 + loss.classes()), 0), all_slopes;
  const auto of_scale = [&](const std::vector<double>& scale, std::vector<double>& slopes) {
    parameters[0] = scale[0];
    all_slopes.resize(slopes.empty() ? 0 : parameters.size());
    const double value = loss(parameters, all_slopes) + scale_rate / loss.rows() * scale[0];
    if (!slopes.empty()) slopes[0] = all_slopes[0] + scale_rate / loss.rows();
    return value;
  };
  parameters[0] =
      convex_minimum(
          of_scale, {1},
          {.tolerance = 1e-15, .evaluations = 500, .lower = {least_scale}, .upper = {largest_scale}})
          .front();
  const double rows = loss.rows();
  std::vector<double> no_slopes;
  const double value = loss(parameters, no_slopes) + scale_rate / rows * parameters[0];
  const double log_curvature = log_determinant(rows * loss.curvature(parameters).topLeftCorner(1, 1));
  return {std::move(parameters), -rows * value - 0.5 * log_curvature};
}

/// The calibration of highest evidence: few rows, or classes as the scores have them, leave no shifts.
std::vector<double> likeliest(const CalibrationLoss& loss) {
  constexpr std::array precisions{100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1};
  WeighedCalibration best = without_shifts(loss);
  std::vector<double> start = best.parameters;
  for (const double precision : precisions) {
    WeighedCalibration found = with_shifts(loss, precision, start);
    start = found.parameters;
    if (found.log_evidence > best.log_evidence) best = std::move(found);
  }
  return best.parameters;
}

void require_labels_of(const Matrix<double>& mean, std::span<const int> labels, const Vector<double>& counts,
                       const Vector<double>& shares, const char* where) {
  const Index classes = std::max<Index>(2, mean.cols());
  if (mean.rows() != static_cast<Index>(labels.size()) || labels.empty())
    throw ArgumentError(
        fmt::format("{}: expected a row of means for each label and at least one, got {} and {} labels",
                    where, mean.rows(), labels.size()));
  for (std::size_t i = 0; i < labels.size(); ++i)
    require_label(labels[i], static_cast<Index>(i), classes, where);
  if (shares.size() > 0 &&
      (shares.size() != mean.rows() || !shares.allFinite() || !(shares.array() > 0).all()))
    throw ArgumentError(
        fmt::format("{}: expected a positive share for each of {} labels", where, mean.rows()));
  if (counts.size() == 0) return;
  constexpr double rounding = 1e-9;
  if (counts.size() != classes || !counts.allFinite() ||
      (counts.array() * (1 + rounding) < counts_of(labels, shares, classes).array()).any())
    throw ArgumentError(
        fmt::format("{}: expected counts of the {} classes, none below that of the labels", where, classes));
}

/// Without a calibration, where a probability of 0 has a finite loss.
double plain_log_loss(const Matrix<double>& mean, const Vector<double>& variances,
                      std::span<const int> labels) {
  constexpr double least = 1e-300;
  const Matrix<double> probabilities = class_probabilities(mean, variances);
  double sum = 0;
  for (std::size_t i = 0; i < labels.size(); ++i)
    sum -= std::log(std::max(probabilities(static_cast<Index>(i), labels[i]), least));
  return sum / static_cast<double>(labels.size());
}

}  // namespace

Matrix<double> ClassCalibration::probabilities(const Matrix<double>& mean,
                                               const Vector<double>& variances) const {
  if (shifts.size() == 0) return class_probabilities(mean, variances);
  constexpr const char* where = "ClassCalibration::probabilities";
  require_predictions(mean, variances, where);
  if (shifts.size() != std::max<Index>(2, mean.cols()))
    throw ArgumentError(
        fmt::format("{}: expected means of {} classes, got {} outputs", where, shifts.size(), mean.cols()));
  Matrix<double> found = (scale * scores_of(mean, variances)).rowwise() + shifts.transpose();
  for (Index i = 0; i < found.rows(); ++i)
    if (variances(i) > 0) {
      Matrix<double> row = found.row(i);
      take_log_softmax(row);
      found.row(i) = row.array().exp();
    } else {
      // Without variance the largest mean is certain.
      found.row(i) = class_probabilities(mean.row(i), Vector<double>::Zero(1));
    }
  return found;
}

ClassCalibrationFit fit_class_calibration(const Matrix<double>& mean, const Vector<double>& variances,
                                          std::span<const int> labels, const Vector<double>& counts,
                                          const Vector<double>& shares) {
  constexpr const char* where = "fit_class_calibration";
  require_predictions(mean, variances, where);
  require_labels_of(mean, labels, counts, shares, where);
  // Certain predictions have no scores.
  if (!(variances.array() > 0).all()) return {{}, plain_log_loss(mean, variances, labels)};
  const CalibrationLoss loss(
      scores_of(mean, variances), labels,
      counts.size() > 0 ? counts : counts_of(labels, shares, std::max<Index>(2, mean.cols())), shares);
  const std::vector<double> parameters = likeliest(loss);
  std::vector<double> no_slopes;
  return {loss.calibration_of(parameters), loss(parameters, no_slopes)};
}

ClassCalibrationFit fit_class_calibration(const LeaveOneOut& others, const Matrix<double>& targets) {
  // Leave-one-out means are the targets minus the residuals.
  const Matrix<double> seen = targets(representative_inputs(targets.rows()), Eigen::all);
  const std::vector<int> all = classes_of(targets);
  return fit_class_calibration(seen - others.residuals, others.variances, classes_of(seen),
                               counts_of(all, {}, std::max<Index>(2, targets.cols())));
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
