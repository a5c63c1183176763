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

/// Columns of targets that share an amplitude.
struct Columns {
  Index first;
  Index count;

  [[nodiscard]] auto of(const Matrix<double>& matrix) const { return matrix.middleCols(first, count); }
};

std::vector<Columns> columns_by(OutputChoice choice, Index outputs) {
  if (choice == OutputChoice::together) return {{0, outputs}};
  std::vector<Columns> all;
  for (Index c = 0; c < outputs; ++c) all.push_back({c, 1});
  return all;
}

/// Weights (K + lambda I)^-1 y of some outputs for all regularisers, and the scores of their means and densities.
class Path {
 public:
  Path(const BandForm& form, const std::vector<BandCholesky>& factors, const Matrix<double>& targets)
      : outputs_{targets.cols()}, scores_(factors.size(), no_scores()) {
    const Matrix<double> projected = form.to_band(targets);
    Matrix<double> solutions(targets.rows(), outputs_ * static_cast<Index>(factors.size()));
    for (std::size_t i = 0; i < factors.size(); ++i) {
      Matrix<double> x = projected;
      factors[i].whiten(x);
      amplitudes_.push_back(x.squaredNorm() / static_cast<double>(x.size()));
      factors[i].unwhiten(x);
      solutions.middleCols(static_cast<Index>(i) * outputs_, outputs_) = x;
    }
    weights_ = form.from_band(std::move(solutions));
  }

  void compare(const Matrix<double>& cross, Matrix<double> targets) {
    validation_targets_ = std::move(targets);
    means_ = multiply(cross, Transpose::no, weights_, Transpose::no);
    for (std::size_t i = 0; i < scores_.size(); ++i) {
      scores_[i].accuracy = accuracy(mean(i), validation_targets_);
      scores_[i].mean_squared_error = mean_squared_error(mean(i), validation_targets_);
    }
  }

  /// Of validation targets, from variances of the amplitude 1.
  void add_density(std::size_t i, double amplitude, const Vector<double>& variances, double lambda) {
    scores_[i].negative_log_predictive_density = negative_log_predictive_density(
        mean(i), amplitude * variances, amplitude * lambda, validation_targets_);
  }

  [[nodiscard]] Matrix<double> mean(std::size_t i) const { return columns_of_path(means_, outputs_, i); }
  [[nodiscard]] Matrix<double> weights(std::size_t i) const { return columns_of_path(weights_, outputs_, i); }
  /// Of Regression: y^T (K + lambda I)^-1 y / n.
  [[nodiscard]] double amplitude(std::size_t i) const { return amplitudes_[i]; }
  [[nodiscard]] RegulariserScore& score(std::size_t i) { return scores_[i]; }
  [[nodiscard]] std::vector<RegulariserScore> take() && { return std::move(scores_); }

 private:
  Index outputs_;
  std::vector<RegulariserScore> scores_;
  std::vector<double> amplitudes_;
  Matrix<double> weights_;
  Matrix<double> means_;
  Matrix<double> validation_targets_;
};

/// A path for each set of columns, compared with validation targets where there are some.
std::vector<Path> paths_of(const BandForm& form, const std::vector<BandCholesky>& factors,
                           const Matrix<double>& targets, const Matrix<double>* cross,
                           const Matrix<double>* validation_targets, OutputChoice choice) {
  std::vector<Path> paths;
  for (const Columns& columns : columns_by(choice, targets.cols())) {
    paths.emplace_back(form, factors, columns.of(targets));
    if (cross != nullptr) paths.back().compare(*cross, columns.of(*validation_targets));
  }
  return paths;
}

std::vector<BandCholesky> factors_of(const BandForm& form, const std::vector<double>& lambdas) {
  std::vector<BandCholesky> factors;
  factors.reserve(lambdas.size());
  for (const double lambda : lambdas) factors.push_back(BandCholesky::of(form, lambda).value());
  return factors;
}

OutputScores scores_in(std::vector<Path> paths) {
  OutputScores scores;
  for (Path& path : paths) scores.push_back(std::move(path).take());
  return scores;
}

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

/// What leave-one-out predictions of converged networks take from the kernels: residuals are weights / g, variances of
/// the amplitude 1; see GradientFlow::leave_one_out(). `nngp` and `basis` in the basis of the NTK's band.
struct FlowOthers {
  Vector<double> g;
  Vector<double> variances;

  [[nodiscard]] LeaveOneOut of(const Matrix<double>& weights) const {
    return {g.cwiseInverse().asDiagonal() * weights, variances};
  }
};

FlowOthers flow_others(const BandCholesky& factor, double lambda, const Matrix<double>& basis,
                       const Matrix<double>& nngp) {
  FlowOthers others{Vector<double>(basis.cols()), Vector<double>(basis.cols())};
  for_each_row_block(basis.cols(), [&](Index first, Index count) {
    const Matrix<double> columns = basis.middleCols(first, count), inverse = solved(factor, columns);
    const Vector<double> g = inverse.cwiseProduct(columns).colwise().sum().transpose();
    const Vector<double> variances = quadratic_forms(nngp, inverse).cwiseMax(0);
    others.g.segment(first, count) = g;
    others.variances.segment(first, count) = variances.array() / g.array().square() + lambda;
  });
  return others;
}

}  // namespace

RegulariserScore no_scores() {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  return {nan, false, nan, nan, nan, nan, nan, {}};
}

OutputScores regression_scores(BandForm form, const Matrix<double>& targets,
                               const std::vector<double>& lambdas,
                               const std::optional<ValidationPart>& validation, bool leave_one_out,
                               OutputChoice choice) {
  const std::vector<BandCholesky> factors = factors_of(form, lambdas);
  std::vector<Path> paths = paths_of(form, factors, targets, validation ? &validation->cross : nullptr,
                                     validation ? &validation->targets : nullptr, choice);
  Matrix<double> cross;
  if (validation && validation->variances.size() > 0) cross = form.to_band(validation->cross.transpose());
  const Matrix<double> basis = leave_one_out ? std::move(form).take_basis() : Matrix<double>();
  const Index n = targets.rows(), outputs = choice == OutputChoice::together ? targets.cols() : 1;
  for (std::size_t i = 0; i < lambdas.size(); ++i) {
    Vector<double> others, seen;
    if (leave_one_out) others = inverse_diagonal(factors[i], basis).cwiseInverse();
    if (cross.size() > 0) {
      Matrix<double> whitened = cross;
      factors[i].whiten(whitened);
      seen = (validation->variances - whitened.colwise().squaredNorm().transpose()).cwiseMax(0);
    }
    for (Path& path : paths) {
      const double amplitude = path.amplitude(i);
      if (amplitude == 0) continue;  // Of targets that are all 0: no density is finite.
      path.score(i).log_marginal_likelihood = evidence(amplitude, factors[i].log_determinant(), n, outputs);
      if (leave_one_out)
        path.score(i).leave_one_out = LeaveOneOut{others.asDiagonal() * path.weights(i), amplitude * others}
                                          .negative_log_predictive_density();
      if (cross.size() > 0) path.add_density(i, amplitude, seen, lambdas[i]);
    }
  }
  return scores_in(std::move(paths));
}

OutputScores flow_scores(BandForm ntk, Matrix<double> nngp, const Matrix<double>& targets,
                         const std::vector<double>& lambdas,
                         const std::optional<FlowValidationPart>& validation, OutputChoice choice) {
  const std::vector<BandCholesky> factors = factors_of(ntk, lambdas);
  std::vector<Path> paths = paths_of(ntk, factors, targets, validation ? &validation->ntk_cross : nullptr,
                                     validation ? &validation->targets : nullptr, choice);
  if (nngp.size() == 0) return scores_in(std::move(paths));
  nngp = ntk.to_band(std::move(nngp));
  nngp.transposeInPlace();
  nngp = ntk.to_band(std::move(nngp));
  Matrix<double> ntk_cross, nngp_cross;
  if (validation) {
    ntk_cross = ntk.to_band(validation->ntk_cross.transpose());
    nngp_cross = ntk.to_band(validation->nngp_cross.transpose());
  }
  const Matrix<double> basis = std::move(ntk).take_basis();
  for (std::size_t i = 0; i < lambdas.size(); ++i) {
    const FlowOthers others = flow_others(factors[i], lambdas[i], basis, nngp);
    Vector<double> seen;
    if (validation) {
      const Matrix<double> response = solved(factors[i], ntk_cross);
      seen = (validation->variances + quadratic_forms(nngp, response) -
              2 * response.cwiseProduct(nngp_cross).colwise().sum().transpose())
                 .cwiseMax(0);
    }
    for (Path& path : paths) {
      LeaveOneOut left_out = others.of(path.weights(i));
      const double amplitude = left_out.most_likely_scale("select_regulariser");
      if (amplitude == 0) continue;
      left_out.variances *= amplitude;
      path.score(i).leave_one_out = left_out.negative_log_predictive_density();
      if (validation) path.add_density(i, amplitude, seen, lambdas[i]);
    }
  }
  return scores_in(std::move(paths));
}

}  // namespace widelimit::gp
