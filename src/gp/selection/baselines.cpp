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

/// The penalised loss and its derivatives. Parameters are [rank + 1, outputs]: weights of the columns divided by
/// `units`, in which the loss has a curvature of about 1 in all directions, and intercepts.
class LogisticLoss {
 public:
  LogisticLoss(const PrincipalColumns& columns, std::span<const int> labels, int classes)
      : outputs_{classes == 2 ? 1 : classes},
        units_{(1 + columns.powers.array() / 4).sqrt().inverse()},
        columns_{columns.train * units_.asDiagonal()},
        labels_{labels},
        intercept_unit_{1 / std::sqrt(static_cast<double>(labels.size()) / 4)} {}

  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>((units_.size() + 1) * outputs_); }

  [[nodiscard]] Matrix<double> scores(const Matrix<double>& scaled_columns,
                                      const std::vector<double>& parameters) const {
    const Eigen::Map<const Matrix<double>> all(parameters.data(), units_.size() + 1, outputs_);
    return (scaled_columns * all.topRows(units_.size())).rowwise() + intercept_unit_ * all.row(units_.size());
  }

  double operator()(const std::vector<double>& parameters, std::vector<double>& slopes) const {
    const Eigen::Map<const Matrix<double>> all(parameters.data(), units_.size() + 1, outputs_);
    const Matrix<double> weights = units_.asDiagonal() * all.topRows(units_.size());
    const Matrix<double> logarithms = log_probabilities(scores(columns_, parameters));
    double loss = weights.squaredNorm() / 2;
    Matrix<double> difference = logarithms.array().exp();
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      loss -= logarithms(static_cast<Index>(i), labels_[i]);
      difference(static_cast<Index>(i), labels_[i]) -= 1;
    }
    if (slopes.empty()) return loss;
    const Matrix<double> by_score = difference.rightCols(outputs_);
    Eigen::Map<Matrix<double>> out(slopes.data(), units_.size() + 1, outputs_);
    out.topRows(units_.size()) = columns_.transpose() * by_score + units_.asDiagonal() * weights;
    out.row(units_.size()) = intercept_unit_ * by_score.colwise().sum();
    return loss;
  }

  [[nodiscard]] Matrix<double> scaled(const Matrix<double>& other) const {
    return other * units_.asDiagonal();
  }

 private:
  Index outputs_;
  Vector<double> units_;
  Matrix<double> columns_;
  std::span<const int> labels_;
  double intercept_unit_;
};

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
  const LogisticLoss loss(columns, labels, classes);
  const std::vector<double> parameters = convex_minimum(std::cref(loss), std::vector<double>(loss.size(), 0),
                                                        {.tolerance = 1e-12, .evaluations = 300});
  return log_probabilities(loss.scores(loss.scaled(columns.test), parameters)).array().exp();
}

}  // namespace widelimit::gp
