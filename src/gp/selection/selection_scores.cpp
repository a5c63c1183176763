#include "gp/selection/selection_scores.hpp"

#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "gp/solvers/variances.hpp"
#include "widelimit/gp/metrics.hpp"

namespace widelimit::gp {
namespace {

using Eigen::Index;

double evidence(double amplitude, double log_determinant, Index n, Index outputs) {
  const auto count = static_cast<double>(n);
  return -0.5 * static_cast<double>(outputs) *
         (count + log_determinant + count * std::log(2 * std::numbers::pi * amplitude));
}

/// The columns of regulariser number i.
auto columns_of_path(const Matrix<double>& side_by_side, Index outputs, std::size_t i) {
  return side_by_side.middleCols(static_cast<Index>(i) * outputs, outputs);
}

/// (B + lambda I)^-1 x.
Matrix<double> solved(const BandCholesky& factor, Matrix<double> x) {
  factor.whiten(x);
  factor.unwhiten(x);
  return x;
}

BandCholesky factor_of(const BandForm& form, double lambda) { return BandCholesky::of(form, lambda).value(); }

/// What is the same for both kinds of posterior: weights (K + lambda I)^-1 y for all regularisers, side by side, and the
/// scores of their means.
class Path {
 public:
  Path(const BandForm& form, const Matrix<double>& targets, const std::vector<double>& lambdas)
      : outputs_{targets.cols()}, scores_(lambdas.size(), no_scores()) {
    const Matrix<double> projected = form.to_band(targets);
    Matrix<double> solutions(targets.rows(), outputs_ * static_cast<Index>(lambdas.size()));
    for (std::size_t i = 0; i < lambdas.size(); ++i) {
      const BandCholesky factor = factor_of(form, lambdas[i]);
      Matrix<double> x = projected;
      factor.whiten(x);
      amplitudes_.push_back(x.squaredNorm() / static_cast<double>(x.size()));
      log_determinants_.push_back(factor.log_determinant());
      factor.unwhiten(x);
      solutions.middleCols(static_cast<Index>(i) * outputs_, outputs_) = x;
    }
    weights_ = form.from_band(std::move(solutions));
  }

  void compare(const Matrix<double>& cross, const Matrix<double>& targets) {
    means_ = multiply(cross, Transpose::no, weights_, Transpose::no);
    for (std::size_t i = 0; i < scores_.size(); ++i) {
      scores_[i].accuracy = accuracy(mean(i), targets);
      scores_[i].mean_squared_error = mean_squared_error(mean(i), targets);
    }
  }

  [[nodiscard]] Matrix<double> mean(std::size_t i) const { return columns_of_path(means_, outputs_, i); }
  [[nodiscard]] Matrix<double> weights(std::size_t i) const { return columns_of_path(weights_, outputs_, i); }
  [[nodiscard]] double amplitude(std::size_t i) const { return amplitudes_[i]; }
  [[nodiscard]] double log_determinant(std::size_t i) const { return log_determinants_[i]; }
  [[nodiscard]] RegulariserScore& score(std::size_t i) { return scores_[i]; }
  [[nodiscard]] std::vector<RegulariserScore> take() && { return std::move(scores_); }

 private:
  Index outputs_;
  std::vector<RegulariserScore> scores_;
  std::vector<double> amplitudes_;  ///< Of Regression: y^T (K + lambda I)^-1 y / n.
  std::vector<double> log_determinants_;
  Matrix<double> weights_;
  Matrix<double> means_;
};

/// Diagonal of (K + lambda I)^-1, from Q^T.
Vector<double> inverse_diagonal(const BandCholesky& factor, const Matrix<double>& basis) {
  Vector<double> diagonal(basis.cols());
  for_each_row_block(basis.cols(), [&](Index first, Index count) {
    Matrix<double> columns = basis.middleCols(first, count);
    factor.whiten(columns);
    diagonal.segment(first, count) = columns.colwise().squaredNorm().transpose();
  });
  return diagonal;
}

/// Of converged networks with the amplitude 1, see GradientFlow::leave_one_out(); `nngp` and `basis` in the basis of the
/// NTK's band.
LeaveOneOut flow_leave_one_out(const BandCholesky& factor, double lambda, const Matrix<double>& basis,
                               const Matrix<double>& nngp, Matrix<double> weights) {
  LeaveOneOut others{std::move(weights), Vector<double>(basis.cols())};
  for_each_row_block(basis.cols(), [&](Index first, Index count) {
    const Matrix<double> columns = basis.middleCols(first, count), inverse = solved(factor, columns);
    const Vector<double> g = inverse.cwiseProduct(columns).colwise().sum().transpose();
    const Vector<double> variances = quadratic_forms(nngp, inverse).cwiseMax(0);
    others.residuals.middleRows(first, count) =
        g.cwiseInverse().asDiagonal() * others.residuals.middleRows(first, count);
    others.variances.segment(first, count) = variances.array() / g.array().square() + lambda;
  });
  return others;
}

}  // namespace

RegulariserScore no_scores() {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  return {nan, false, nan, nan, nan, nan, nan};
}

std::vector<RegulariserScore> regression_scores(BandForm form, const Matrix<double>& targets,
                                                const std::vector<double>& lambdas,
                                                const std::optional<ValidationPart>& validation,
                                                bool leave_one_out) {
  Path path(form, targets, lambdas);
  Matrix<double> cross;
  if (validation) {
    path.compare(validation->cross, validation->targets);
    if (validation->variances.size() > 0) cross = form.to_band(validation->cross.transpose());
  }
  std::vector<BandCholesky> factors;
  for (const double lambda : lambdas) {
    if (cross.size() == 0 && !leave_one_out) break;
    factors.push_back(factor_of(form, lambda));
  }
  const Matrix<double> basis = leave_one_out ? std::move(form).take_basis() : Matrix<double>();
  for (std::size_t i = 0; i < lambdas.size(); ++i) {
    RegulariserScore& score = path.score(i);
    const double amplitude = path.amplitude(i);
    if (amplitude == 0) continue;  // Of targets that are all 0: no density is finite.
    score.log_marginal_likelihood =
        evidence(amplitude, path.log_determinant(i), targets.rows(), targets.cols());
    if (leave_one_out) {
      const Vector<double> variances = inverse_diagonal(factors[i], basis).cwiseInverse();
      score.leave_one_out = LeaveOneOut{variances.asDiagonal() * path.weights(i), amplitude * variances}
                                .negative_log_predictive_density();
    }
    if (cross.size() == 0) continue;
    Matrix<double> whitened = cross;
    factors[i].whiten(whitened);
    const Vector<double> variances =
        (validation->variances - whitened.colwise().squaredNorm().transpose()).cwiseMax(0);
    score.negative_log_predictive_density = negative_log_predictive_density(
        path.mean(i), amplitude * variances, amplitude * lambdas[i], validation->targets);
  }
  return std::move(path).take();
}

std::vector<RegulariserScore> flow_scores(BandForm ntk, Matrix<double> nngp, const Matrix<double>& targets,
                                          const std::vector<double>& lambdas,
                                          const std::optional<FlowValidationPart>& validation) {
  Path path(ntk, targets, lambdas);
  if (validation) path.compare(validation->ntk_cross, validation->targets);
  if (nngp.size() == 0) return std::move(path).take();
  nngp = ntk.to_band(std::move(nngp));
  nngp.transposeInPlace();
  nngp = ntk.to_band(std::move(nngp));
  Matrix<double> ntk_cross, nngp_cross;
  if (validation) {
    ntk_cross = ntk.to_band(validation->ntk_cross.transpose());
    nngp_cross = ntk.to_band(validation->nngp_cross.transpose());
  }
  std::vector<BandCholesky> factors;
  for (const double lambda : lambdas) factors.push_back(factor_of(ntk, lambda));
  const Matrix<double> basis = std::move(ntk).take_basis();
  for (std::size_t i = 0; i < lambdas.size(); ++i) {
    LeaveOneOut others = flow_leave_one_out(factors[i], lambdas[i], basis, nngp, path.weights(i));
    const double amplitude = others.most_likely_scale("select_regulariser");
    others.variances *= amplitude;
    path.score(i).leave_one_out = others.negative_log_predictive_density();
    if (!validation || amplitude == 0) continue;
    const Matrix<double> response = solved(factors[i], ntk_cross);
    const Vector<double> variances = (validation->variances + quadratic_forms(nngp, response) -
                                      2 * response.cwiseProduct(nngp_cross).colwise().sum().transpose())
                                         .cwiseMax(0);
    path.score(i).negative_log_predictive_density = negative_log_predictive_density(
        path.mean(i), amplitude * variances, amplitude * lambdas[i], validation->targets);
  }
  return std::move(path).take();
}

}  // namespace widelimit::gp
