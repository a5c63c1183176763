#include "widelimit/gp/iterative_regression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gp/checks.hpp"
#include "gp/solvers/flow_leave_one_out.hpp"
#include "gp/solvers/linear_algebra.hpp"
#include "gp/solvers/shifted_solver.hpp"
#include "gp/solvers/variances.hpp"
#include "widelimit/error.hpp"

namespace widelimit::gp {

using Eigen::Index;

namespace {

constexpr Index right_hand_sides = 256;  ///< Solved for at a time.

void require_nngp_size(const KernelOperator& nngp, Index n, const char* where) {
  if (nngp.size() != n)
    throw ArgumentError(
        fmt::format("{}: the NNGP must be as large as the NTK, {}, got {}", where, n, nngp.size()));
}

void require_cross_columns(const CrossGram& cross, Index n, const char* where, const char* name) {
  if (cross.columns() != n)
    throw ArgumentError(fmt::format("{}: {} must be [any number of rows, {}], got [{}, {}]", where, name, n,
                                    cross.rows(), cross.columns()));
}

}  // namespace

IterativeRegression::IterativeRegression(std::shared_ptr<const KernelOperator> gram,
                                         const ConjugateGradientOptions& options)
    : gram_{std::move(gram)},
      options_{options},
      preconditioner_{std::make_shared<const LowRankKernel>(preconditioner_of(*gram_, options))} {}

void IterativeRegression::take_weights(const ShiftedSolutions& path, std::size_t number,
                                       const std::vector<double>& lambdas) {
  weights_ = path.solutions[number];
  lambda_ = lambdas[number];
  // The pass that made the preconditioner counts for every solution that uses it.
  passes_ = path.passes + (preconditioner_->vectors.cols() > 0 ? 1 : 0);
  relative_residual_ = path.relative_residuals[number];
}

void IterativeRegression::fit_amplitude(const Matrix<double>& targets) {
  // The most likely amplitude is y^T (K + lambda I)^-1 y over the number of targets
  // (docs/theory/inference.md, section 2).
  amplitude_ = targets.cwiseProduct(weights_).sum() / static_cast<double>(targets.size());
}

IterativeRegression IterativeRegression::fit(std::shared_ptr<const KernelOperator> gram,
                                             const Matrix<double>& targets, const Noise& noise,
                                             const ConjugateGradientOptions& options) {
  require_targets(targets, gram->size(), "IterativeRegression::fit");
  const std::vector<double> lambdas{gp::noise_variance(noise, gram->diagonal().mean())};
  IterativeRegression result(std::move(gram), options);
  result.take_weights(solve_shifted(*result.gram_, *result.preconditioner_, targets, lambdas, options), 0,
                      lambdas);
  // Only with a relative regulariser is the scale of the kernel arbitrary.
  if (std::holds_alternative<RelativeRegulariser>(noise)) result.fit_amplitude(targets);
  return result;
}

IterativeRegression IterativeRegression::joined(const std::vector<IterativeRegression>& parts) {
  constexpr const char* where = "IterativeRegression::joined";
  if (parts.empty()) throw ArgumentError(fmt::format("{}: expected a regression or more, got none", where));
  IterativeRegression result = parts.front();
  // Joined posteriors have the amplitude 1; amplitudes of outputs are kept beside them.
  result.amplitude_ = 1;
  Index outputs = 0;
  for (const IterativeRegression& part : parts) {
    if (part.lambda_ != result.lambda_ || part.gram_ != result.gram_)
      throw ArgumentError(fmt::format("{}: expected regressions with one matrix and one noise", where));
    outputs += part.weights_.cols();
  }
  result.weights_.resize(result.weights_.rows(), outputs);
  Index column = 0;
  for (const IterativeRegression& part : parts) {
    result.weights_.middleCols(column, part.weights_.cols()) = part.weights_;
    column += part.weights_.cols();
    result.relative_residual_ = std::max(result.relative_residual_, part.relative_residual_);
  }
  return result;
}

IterativeRegression IterativeRegression::of_weights(std::shared_ptr<const KernelOperator> gram,
                                                    Matrix<double> weights, double lambda,
                                                    const ConjugateGradientOptions& options) {
  return IterativeRegression(std::move(gram), options).with_weights(std::move(weights), lambda, options);
}

IterativeRegression IterativeRegression::with_weights(Matrix<double> weights, double lambda,
                                                      const ConjugateGradientOptions& options) const {
  constexpr const char* where = "IterativeRegression::with_weights";
  require_shape(weights, gram_->size(), -1, where, "the weights");
  require_finite(weights, where, "the weights");
  require_not_negative(lambda, where, "lambda");
  IterativeRegression result = *this;
  result.options_ = options;
  result.weights_ = std::move(weights);
  result.lambda_ = lambda;
  result.amplitude_ = 1;
  result.passes_ = 0;
  result.relative_residual_ = options.relative_residual;
  return result;
}

IterativeRegression IterativeRegression::with_amplitude(double amplitude) const {
  require_amplitude(amplitude, "IterativeRegression::with_amplitude");
  IterativeRegression result = *this;
  result.amplitude_ = amplitude;
  return result;
}

Matrix<double> IterativeRegression::mean(const CrossGram& cross_gram) const {
  require_cross_columns(cross_gram, weights_.rows(), "IterativeRegression::mean", "the cross Gram matrix");
  return cross_gram.multiply(weights_);
}

Matrix<double> IterativeRegression::solved(const Matrix<double>& b) const {
  return solve_shifted(*gram_, *preconditioner_, b, {lambda_}, options_).solutions[0];
}

LeaveOneOut IterativeRegression::flow_leave_one_out(const KernelOperator& nngp) const {
  return flow_leave_one_out(nngp, all_inputs(weights_.rows()));
}

LeaveOneOut IterativeRegression::flow_leave_one_out(const KernelOperator& nngp,
                                                    std::span<const Index> inputs) const {
  constexpr const char* where = "IterativeRegression::flow_leave_one_out";
  const Index n = weights_.rows();
  require_nngp_size(nngp, n, where);
  require_inputs_of(inputs, n, where);
  return solved_leave_one_out(nngp, weights_, lambda_, inputs, std::min(right_hand_sides, n),
                              [this](const Matrix<double>& b) { return solved(b); });
}

double IterativeRegression::flow_leave_one_out_amplitude(const KernelOperator& nngp) const {
  return flow_leave_one_out(nngp).most_likely_scale("IterativeRegression::flow_leave_one_out_amplitude");
}

Matrix<double> IterativeRegression::responses(const Matrix<double>& cross_gram) const {
  require_cross_gram(cross_gram, weights_.rows(), "IterativeRegression::responses", "the cross Gram matrix");
  // Blocks bound the memory that search directions and products take.
  const Index n = weights_.rows(), block = std::min(right_hand_sides, n);
  Matrix<double> result(n, cross_gram.rows());
  for (Index first = 0; first < cross_gram.rows(); first += block) {
    const Index count = std::min(block, cross_gram.rows() - first);
    result.middleCols(first, count) = solved(cross_gram.middleRows(first, count).transpose());
  }
  return result;
}

void IterativeRegression::require_flow(const KernelOperator& nngp, const CrossGram& nngp_cross,
                                       const CrossGram& ntk_cross, const char* where) const {
  require_fitted_amplitude(amplitude_, where);
  const Index n = weights_.rows();
  require_cross_columns(ntk_cross, n, where, "the cross NTK");
  require_cross_columns(nngp_cross, n, where, "the cross NNGP Gram matrix");
  if (nngp_cross.rows() != ntk_cross.rows())
    throw ArgumentError(fmt::format("{}: both cross Gram matrices must have as many rows, got {} and {}",
                                    where, nngp_cross.rows(), ntk_cross.rows()));
  require_nngp_size(nngp, n, where);
}

Vector<double> IterativeRegression::variance(const CrossGram& cross_gram,
                                             const Vector<double>& test_variances) const {
  constexpr const char* where = "IterativeRegression::variance";
  require_fitted_amplitude(amplitude_, where);
  require_cross_columns(cross_gram, weights_.rows(), where, "the cross Gram matrix");
  require_test_variances(test_variances, cross_gram.rows(), where);
  Vector<double> variance = test_variances;
  for_each_row_block(cross_gram.rows(), [&](Index first, Index count) {
    // Row by row the variance is k_** - k_*^T (K + lambda I)^-1 k_*.
    const Matrix<double> block = cross_gram.block(first, count);
    variance.segment(first, count) -=
        block.transpose().cwiseProduct(responses(block)).colwise().sum().transpose();
  });
  return amplitude_ * without_rounding_below_zero(std::move(variance), test_variances, where);
}

Matrix<double> IterativeRegression::covariance(const CrossGram& cross_gram, Matrix<double> test_gram) const {
  constexpr const char* where = "IterativeRegression::covariance";
  require_fitted_amplitude(amplitude_, where);
  require_cross_columns(cross_gram, weights_.rows(), where, "the cross Gram matrix");
  require_test_gram(test_gram, cross_gram.rows(), where, options_.threads);
  for_each_row_block(cross_gram.rows(), [&](Index first, Index count) {
    test_gram.middleCols(first, count) -= cross_gram.multiply(responses(cross_gram.block(first, count)));
  });
  mirror_upper_triangle(test_gram);
  return amplitude_ * test_gram;
}

Vector<double> IterativeRegression::flow_variance(const KernelOperator& nngp, const CrossGram& nngp_cross,
                                                  const CrossGram& ntk_cross,
                                                  const Vector<double>& nngp_test_variances) const {
  constexpr const char* where = "IterativeRegression::flow_variance";
  require_flow(nngp, nngp_cross, ntk_cross, where);
  require_test_variances(nngp_test_variances, ntk_cross.rows(), where);
  Vector<double> variance = nngp_test_variances;
  for_each_row_block(ntk_cross.rows(), [&](Index first, Index count) {
    // docs/theory/inference.md, section 3, at infinite time: row by row K_** + b^T (K b - 2 K_*^T).
    const Matrix<double> b = responses(ntk_cross.block(first, count));
    Matrix<double> left = nngp.multiply(b);
    left -= 2 * nngp_cross.block(first, count).transpose();
    variance.segment(first, count) += left.cwiseProduct(b).colwise().sum().transpose();
  });
  return amplitude_ * without_rounding_below_zero(variance, nngp_test_variances, where);
}

Matrix<double> IterativeRegression::flow_covariance(const KernelOperator& nngp, const CrossGram& nngp_cross,
                                                    const CrossGram& ntk_cross,
                                                    Matrix<double> nngp_test) const {
  constexpr const char* where = "IterativeRegression::flow_covariance";
  require_flow(nngp, nngp_cross, ntk_cross, where);
  require_test_gram(nngp_test, ntk_cross.rows(), where, options_.threads);
  Matrix<double> b(weights_.rows(), ntk_cross.rows());
  for_each_row_block(ntk_cross.rows(), [&](Index first, Index count) {
    b.middleCols(first, count) = responses(ntk_cross.block(first, count));
  });
  for_each_row_block(ntk_cross.rows(), [&](Index first, Index count) {
    // The covariance is K_** + S + S^T with S^T = (B^T K / 2 - K_*) B, a block of whose columns is made here.
    const auto columns = b.middleCols(first, count);
    Matrix<double> s = b.transpose() * nngp.multiply(0.5 * columns);
    s -= nngp_cross.multiply(columns);
    nngp_test.middleCols(first, count) += s;
    nngp_test.middleRows(first, count) += s.transpose();
  });
  mirror_upper_triangle(nngp_test);
  return amplitude_ * nngp_test;
}

}  // namespace widelimit::gp
