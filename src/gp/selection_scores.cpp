#include "gp/selection_scores.hpp"

#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "widelimit/gp/metrics.hpp"

namespace widelimit::gp {
namespace {

using Eigen::Index;

double evidence(double amplitude, double log_determinant, Index n, Index outputs) {
  const auto count = static_cast<double>(n);
  return -0.5 * static_cast<double>(outputs) *
         (count + log_determinant + count * std::log(2 * std::numbers::pi * amplitude));
}

}  // namespace

RegulariserScore no_scores() {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  return {nan, false, nan, nan, nan, nan, nan};
}

RegressionScores::RegressionScores(const SpectralGram& gram, const Matrix<double>& targets,
                                   std::vector<double> lambdas, std::optional<SpectralValidation> validation,
                                   bool leave_one_out)
    : gram_{gram},
      lambdas_{std::move(lambdas)},
      validation_{std::move(validation)},
      projected_{multiply(gram.eigen.vectors, Transpose::no, targets, Transpose::no)} {
  const auto count = static_cast<Index>(lambdas_.size());
  Matrix<double> scaled(targets.rows(), targets.cols() * count);
  Matrix<double> inverses(count, targets.rows());
  for (std::size_t i = 0; i < lambdas_.size(); ++i) {
    inverses.row(static_cast<Index>(i)) = inverse(i).transpose();
    scaled.middleCols(static_cast<Index>(i) * targets.cols(), targets.cols()) =
        inverse(i).asDiagonal() * projected_;
  }
  weights_ = multiply(gram.eigen.vectors, Transpose::yes, scaled, Transpose::no);
  if (leave_one_out)
    inverse_diagonals_ = multiply(inverses, Transpose::no, gram.eigen.vectors.cwiseAbs2(), Transpose::no);
  if (!validation_) return;
  means_ = multiply(validation_->cross, Transpose::no, weights_, Transpose::no);
  if (validation_->variances.size() > 0)
    cross_squares_ =
        multiply(validation_->cross, Transpose::no, gram.eigen.vectors, Transpose::yes).cwiseAbs2();
}

Vector<double> RegressionScores::inverse(std::size_t i) const {
  return (gram_.eigen.values.array() + lambdas_[i]).inverse();
}

RegulariserScore RegressionScores::of(std::size_t i) const {
  RegulariserScore score = no_scores();
  const Vector<double> inverses = inverse(i);
  const double amplitude =
      projected_.rowwise().squaredNorm().dot(inverses) / static_cast<double>(projected_.size());
  score.log_marginal_likelihood =
      evidence(amplitude, -inverses.array().log().sum(), projected_.rows(), projected_.cols());
  if (inverse_diagonals_.size() > 0) score.leave_one_out = leave_one_out(i, amplitude);
  if (validation_) add_validation_scores(score, i, amplitude);
  return score;
}

double RegressionScores::leave_one_out(std::size_t i, double amplitude) const {
  const Vector<double> variances = inverse_diagonals_.row(static_cast<Index>(i)).cwiseInverse().transpose();
  const LeaveOneOut others{variances.asDiagonal() * columns(weights_, i), amplitude * variances};
  return others.negative_log_predictive_density();
}

void RegressionScores::add_validation_scores(RegulariserScore& score, std::size_t i, double amplitude) const {
  const Matrix<double> mean = columns(means_, i);
  score.accuracy = accuracy(mean, validation_->targets);
  score.mean_squared_error = mean_squared_error(mean, validation_->targets);
  if (cross_squares_.size() == 0 || amplitude == 0) return;
  const Vector<double> variances = (validation_->variances - cross_squares_ * inverse(i)).cwiseMax(0);
  score.negative_log_predictive_density = negative_log_predictive_density(
      mean, amplitude * variances, amplitude * lambdas_[i], validation_->targets);
}

FlowScores::FlowScores(const SpectralGram& ntk, const Matrix<double>& nngp, const Matrix<double>& targets,
                       std::vector<double> lambdas, std::optional<SpectralFlowValidation> validation,
                       bool densities)
    : ntk_{ntk},
      lambdas_{std::move(lambdas)},
      validation_{std::move(validation)},
      projected_{multiply(ntk.eigen.vectors, Transpose::no, targets, Transpose::no)} {
  const Matrix<double>& vectors = ntk.eigen.vectors;
  if (densities)
    nngp_ = multiply(multiply(vectors, Transpose::no, nngp, Transpose::no), Transpose::no, vectors,
                     Transpose::yes);
  if (!validation_) return;
  validation_->ntk_cross = multiply(validation_->ntk_cross, Transpose::no, vectors, Transpose::yes);
  validation_->nngp_cross = multiply(validation_->nngp_cross, Transpose::no, vectors, Transpose::yes);
}

RegulariserScore FlowScores::of(std::size_t i) const {
  RegulariserScore score = no_scores();
  const double lambda = lambdas_[i];
  const Vector<double> growth = (ntk_.eigen.values.array() + lambda).inverse();
  std::optional<double> amplitude;
  if (nngp_.size() > 0) {
    LeaveOneOut others = leave_one_out(lambda, growth);
    amplitude = (others.residuals.rowwise().squaredNorm().array() / others.variances.array()).sum() /
                static_cast<double>(others.residuals.size());
    others.variances *= *amplitude;
    score.leave_one_out = others.negative_log_predictive_density();
  }
  if (validation_) add_validation_scores(score, lambda, growth, amplitude);
  return score;
}

// With the amplitude 1, see GradientFlow::leave_one_out().
LeaveOneOut FlowScores::leave_one_out(double lambda, const Vector<double>& growth) const {
  const Matrix<double>& vectors = ntk_.eigen.vectors;
  const Matrix<double> scaled = growth.asDiagonal() * vectors;
  const Matrix<double> product = multiply(nngp_, Transpose::no, scaled, Transpose::no);
  const Vector<double> g = vectors.cwiseProduct(scaled).colwise().sum().transpose();
  const Vector<double> variances = product.cwiseProduct(scaled).colwise().sum().transpose().cwiseMax(0);
  const Matrix<double> weights = multiply(scaled, Transpose::yes, projected_, Transpose::no);
  return {g.cwiseInverse().asDiagonal() * weights,
          (variances.array() / g.array().square() + lambda).matrix()};
}

void FlowScores::add_validation_scores(RegulariserScore& score, double lambda, const Vector<double>& growth,
                                       std::optional<double> amplitude) const {
  const Matrix<double> response = validation_->ntk_cross * growth.asDiagonal();
  const Matrix<double> mean = multiply(response, Transpose::no, projected_, Transpose::no);
  score.accuracy = accuracy(mean, validation_->targets);
  score.mean_squared_error = mean_squared_error(mean, validation_->targets);
  if (!amplitude || *amplitude == 0) return;
  Matrix<double> left = multiply(response, Transpose::no, nngp_, Transpose::no);
  left -= 2 * validation_->nngp_cross;
  const Vector<double> variances =
      (validation_->variances + left.cwiseProduct(response).rowwise().sum()).cwiseMax(0);
  score.negative_log_predictive_density = negative_log_predictive_density(
      mean, *amplitude * variances, *amplitude * lambda, validation_->targets);
}

}  // namespace widelimit::gp
