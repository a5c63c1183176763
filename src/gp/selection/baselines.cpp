#include "widelimit/gp/baselines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "gp/checks.hpp"
#include "gp/selection/convex_minimum.hpp"
#include "gp/selection/principal_columns.hpp"
#include "widelimit/error.hpp"
#include "widelimit/index.hpp"

namespace widelimit::gp {
namespace {

void require_baseline_labels(std::span<const int> labels, int classes, const char* where) {
  if (labels.empty() || classes < 2)
    throw ArgumentError(fmt::format("{}: expected labels of at least two classes, got {} labels of {}", where,
                                    labels.size(), classes));
  for (const int label : labels)
    if (label < 0 || label >= classes)
      throw ArgumentError(fmt::format("{}: labels must be 0 .. {}, got {}", where, classes - 1, label));
}

/// Weights of the columns by least squares with a penalty, and the squared error of inputs left out: the hat matrix of
/// orthogonal columns and an intercept has the diagonal 1 / n + sum_k x_ik^2 / (power_k + penalty).
struct RidgeFit {
  RidgeFit(const PrincipalColumns& columns, const Vector<double>& centred, double penalty)
      : weights{(columns.powers.array() + penalty).inverse().matrix().asDiagonal() *
                (columns.train.transpose() * centred)} {
    const Vector<double> residuals = centred - columns.train * weights;
    const Vector<double> leverages =
        (columns.train.array().square().matrix() * (columns.powers.array() + penalty).inverse().matrix())
            .array() +
        1 / static_cast<double>(centred.size());
    // An input that is fitted whatever its target says nothing of the error where it is left out.
    constexpr double most = 1 - 1e-10;
    left_out_error = (leverages.array() < most).all()
                         ? (residuals.array() / (1 - leverages.array())).square().mean()
                         : std::numeric_limits<double>::infinity();
  }

  Vector<double> weights;
  double left_out_error;
};

RidgeFit best_ridge(const PrincipalColumns& columns, const Vector<double>& centred) {
  constexpr std::array penalties{1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5};
  RidgeFit best(columns, centred, penalties.back());
  for (const double penalty : penalties) {
    RidgeFit fit(columns, centred, penalty);
    if (fit.left_out_error < best.left_out_error) best = std::move(fit);
  }
  return best;
}

/// The logarithms of the probabilities of scores; one score is that of class 1 against 0.
Matrix<double> log_probabilities(const Matrix<double>& scores) {
  Matrix<double> logarithms = scores;
  if (scores.cols() == 1) {
    logarithms = Matrix<double>::Zero(scores.rows(), 2);
    logarithms.col(1) = scores.col(0);
  }
  for (Index i = 0; i < logarithms.rows(); ++i) {
    auto row = logarithms.row(i).array();
    row -= row.maxCoeff();
    row -= std::log(row.exp().sum());
  }
  return logarithms;
}

/// [rank + 1, outputs]: weights of the columns and, in the last row, intercepts. Of two classes there is one output.
using LogisticWeights = Matrix<double>;

Matrix<double> scores_of(const Matrix<double>& columns, const LogisticWeights& weights) {
  return (columns * weights.topRows(columns.cols())).rowwise() + weights.row(columns.cols());
}

/// Inputs in principal directions, and their labels.
struct LabelledColumns {
  Matrix<double> columns;  ///< [n, rank]
  std::vector<int> labels;

  /// Every one of `folds` inputs of each class, from number `fold` on, or all others.
  [[nodiscard]] LabelledColumns part(int folds, int fold, bool others) const {
    std::vector<Index> rows;
    LabelledColumns found;
    std::vector<int> seen(static_cast<std::size_t>(std::ranges::max(labels)) + 1, 0);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const int number = seen[static_cast<std::size_t>(labels[i])]++;
      if ((number % folds == fold) == others) continue;
      rows.push_back(static_cast<Index>(i));
      found.labels.push_back(labels[i]);
    }
    found.columns = columns(rows, Eigen::all);
    return found;
  }
};

/// The penalised loss and its derivatives. Parameters are weights divided by `units`, in which the loss has a curvature
/// of about 1 in all directions.
class LogisticLoss {
 public:
  LogisticLoss(const LabelledColumns& data, const Vector<double>& powers, int classes, double penalty)
      : outputs_{classes == 2 ? 1 : classes}, data_{data}, penalty_{penalty}, units_(powers.size() + 1) {
    units_ << (penalty + powers.array() / 4).sqrt().inverse().matrix(),
        1 / std::sqrt(static_cast<double>(data.labels.size()) / 4);
  }

  double operator()(const std::vector<double>& parameters, std::vector<double>& slopes) const {
    const LogisticWeights weights = weights_of(parameters);
    const Index rank = units_.size() - 1;
    const Matrix<double> logarithms = log_probabilities(scores_of(data_.columns, weights));
    double loss = penalty_ / 2 * weights.topRows(rank).squaredNorm();
    Matrix<double> difference = logarithms.array().exp();
    for (std::size_t i = 0; i < data_.labels.size(); ++i) {
      loss -= logarithms(static_cast<Index>(i), data_.labels[i]);
      difference(static_cast<Index>(i), data_.labels[i]) -= 1;
    }
    if (slopes.empty()) return loss;
    const Matrix<double> by_score = difference.rightCols(outputs_);
    Eigen::Map<Matrix<double>> out(slopes.data(), rank + 1, outputs_);
    out.topRows(rank) = data_.columns.transpose() * by_score + penalty_ * weights.topRows(rank);
    out.row(rank) = by_score.colwise().sum();
    out = (units_.asDiagonal() * out).eval();
    return loss;
  }

  /// The weights of least loss, from others.
  [[nodiscard]] LogisticWeights least(const LogisticWeights& start,
                                      const ConvexMinimisation& accuracy) const {
    const LogisticWeights scaled = units_.cwiseInverse().asDiagonal() * start;
    return weights_of(
        convex_minimum(std::cref(*this), {scaled.data(), scaled.data() + scaled.size()}, accuracy));
  }

  [[nodiscard]] LogisticWeights none() const { return LogisticWeights::Zero(units_.size(), outputs_); }

 private:
  [[nodiscard]] LogisticWeights weights_of(const std::vector<double>& parameters) const {
    return units_.asDiagonal() * Eigen::Map<const Matrix<double>>(parameters.data(), units_.size(), outputs_);
  }

  Index outputs_;
  const LabelledColumns& data_;
  double penalty_;
  Vector<double> units_;
};

/// The sum of -log P(label).
double log_loss_of(const LabelledColumns& data, const LogisticWeights& weights) {
  const Matrix<double> logarithms = log_probabilities(scores_of(data.columns, weights));
  double loss = 0;
  for (std::size_t i = 0; i < data.labels.size(); ++i)
    loss -= std::max(logarithms(static_cast<Index>(i), data.labels[i]),
                     std::log(std::numeric_limits<double>::epsilon()));
  return loss;
}

/// The penalty of least log loss of inputs that are held out, a fifth at a time. Large penalties come first: they are
/// quick, and weights of one are near those of the next. Losses that have grown twice grow on.
double chosen_penalty(const LabelledColumns& data, const Vector<double>& powers, int classes) {
  constexpr int folds = 5;
  constexpr ConvexMinimisation accuracy{.tolerance = 1e-7, .evaluations = 100};
  constexpr int exponents = 8;  // 10^5, 10^4, ..., 10^-2
  std::vector<LabelledColumns> seen, held;
  std::vector<LogisticWeights> weights(folds);
  for (int fold = 0; fold < folds; ++fold) {
    seen.push_back(data.part(folds, fold, true));
    held.push_back(data.part(folds, fold, false));
  }
  double best = 0, least = std::numeric_limits<double>::infinity(), penalty = 1e5;
  for (int k = 0, worse = 0; k < exponents && worse < 2; ++k, penalty /= 10) {
    double sum = 0;
    for (std::size_t fold = 0; fold < folds; ++fold) {
      if (seen[fold].labels.empty()) continue;
      const LogisticLoss loss(seen[fold], powers * ((folds - 1.0) / folds), classes, penalty);
      weights[fold] = loss.least(k == 0 ? loss.none() : weights[fold], accuracy);
      if (!held[fold].labels.empty()) sum += log_loss_of(held[fold], weights[fold]);
    }
    worse = sum < least ? 0 : worse + 1;
    if (sum < least) best = penalty;
    least = std::min(least, sum);
  }
  return best;
}

}  // namespace

NumberBaseline mean_baseline(const Matrix<double>& targets, Eigen::Index n_test) {
  require_targets(targets, targets.rows(), "mean_baseline");
  const auto n = static_cast<double>(targets.rows());
  const Eigen::RowVectorXd mean = targets.colwise().mean();
  const Eigen::RowVectorXd variances =
      (targets.rowwise() - mean).colwise().squaredNorm() * ((1 + 1 / n) / std::max(1.0, n - 1));
  return {mean.replicate(n_test, 1), variances.replicate(n_test, 1)};
}

Matrix<double> frequency_baseline(std::span<const int> labels, int classes, Eigen::Index n_test) {
  require_baseline_labels(labels, classes, "frequency_baseline");
  Eigen::RowVectorXd shares = Eigen::RowVectorXd::Zero(classes);
  for (const int label : labels) shares(label) += 1 / static_cast<double>(labels.size());
  return shares.replicate(n_test, 1);
}

NumberBaseline linear_baseline(const Matrix<double>& train, const Matrix<double>& targets,
                               const Matrix<double>& test) {
  require_targets(targets, train.rows(), "linear_baseline");
  const PrincipalColumns columns(train, test);
  NumberBaseline found{Matrix<double>(test.rows(), targets.cols()),
                       Matrix<double>(test.rows(), targets.cols())};
  for (Index c = 0; c < targets.cols(); ++c) {
    const double mean = targets.col(c).mean();
    const RidgeFit fit = best_ridge(columns, targets.col(c).array() - mean);
    found.mean.col(c) = (columns.test * fit.weights).array() + mean;
    found.variances.col(c).setConstant(fit.left_out_error);
  }
  return found;
}

Matrix<double> logistic_baseline(const Matrix<double>& train, std::span<const int> labels, int classes,
                                 const Matrix<double>& test) {
  constexpr const char* where = "logistic_baseline";
  require_baseline_labels(labels, classes, where);
  require_shape(train, static_cast<Index>(labels.size()), -1, where, "the training inputs (as the labels)");
  const PrincipalColumns columns(train, test);
  const LabelledColumns data{columns.train, {labels.begin(), labels.end()}};
  const LogisticLoss loss(data, columns.powers, classes, chosen_penalty(data, columns.powers, classes));
  const LogisticWeights weights = loss.least(loss.none(), {.tolerance = 1e-12, .evaluations = 300});
  return log_probabilities(scores_of(columns.test, weights)).array().exp();
}

}  // namespace widelimit::gp
