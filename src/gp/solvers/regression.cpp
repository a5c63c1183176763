#include "widelimit/gp/regression.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <variant>

#include "gp/solvers/left_out_by_sets.hpp"
#include "gp/solvers/linear_algebra.hpp"
#include "gp/solvers/variances.hpp"
#include "numerics/blas_threads.hpp"
#include "widelimit/error.hpp"

namespace widelimit::gp {

using Eigen::Index;
using numerics::BlasThreads;

Regression Regression::fit(DoubleMatrix gram, const Matrix<double>& targets, const Noise& noise,
                           int threads) {
  constexpr const char* where = "Regression::fit";
  Regression result;
  result.threads_ = numerics::resolve_threads(threads, where);
  Matrix<double> k = std::move(gram).take();
  require_gram(k, where, "the Gram matrix", result.threads_);
  require_targets(targets, k.rows(), where);
  result.noise_ = noise;
  result.lambda_ = gp::noise_variance(noise, k.diagonal().mean());

  const BlasThreads guard(result.threads_);
  result.cholesky_ = std::make_shared<const Cholesky>(std::move(k), result.lambda_, where);
  result.weights_ = result.cholesky_->solve(targets);
  result.quadratic_form_ = targets.cwiseProduct(result.weights_).sum();
  // Only with a relative regulariser is the kernel's scale arbitrary (docs/theory/inference.md, section 2).
  result.amplitude_follows_ = std::holds_alternative<RelativeRegulariser>(noise);
  if (result.amplitude_follows_)
    result.amplitude_ = result.quadratic_form_ / static_cast<double>(targets.size());
  return result;
}

Regression Regression::with_amplitude(double amplitude) const {
  require_amplitude(amplitude, "Regression::with_amplitude");
  Regression result = *this;
  result.amplitude_ = amplitude;
  result.amplitude_follows_ = false;
  return result;
}

Regression Regression::output(Eigen::Index c, const Matrix<double>& targets) const {
  constexpr const char* where = "Regression::output";
  require_shape(targets, weights_.rows(), weights_.cols(), where, "the targets");
  if (c < 0 || c >= weights_.cols())
    throw ArgumentError(
        fmt::format("{}: expected an output of 0 .. {}, got {}", where, weights_.cols() - 1, c));
  Regression result = *this;
  result.weights_ = weights_.col(c);
  result.quadratic_form_ = targets.col(c).dot(weights_.col(c));
  if (amplitude_follows_) result.amplitude_ = result.quadratic_form_ / static_cast<double>(targets.rows());
  return result;
}

double Regression::log_marginal_likelihood() const {
  require_fitted_amplitude(amplitude_, "Regression::log_marginal_likelihood");
  const auto n = static_cast<double>(weights_.rows()), outputs = static_cast<double>(weights_.cols());
  // (2.30) of Rasmussen and Williams with the covariance A (K + lambda I), A the amplitude, for independent outputs.
  return -0.5 * (quadratic_form_ / amplitude_ +
                 outputs * (cholesky_->log_determinant() + n * std::log(2 * std::numbers::pi * amplitude_)));
}

LeaveOneOut Regression::leave_one_out() const { return leave_one_out(all_inputs(weights_.rows())); }

LeaveOneOut Regression::leave_one_out(std::span<const Index> inputs) const {
  constexpr const char* where = "Regression::leave_one_out";
  require_fitted_amplitude(amplitude_, where);
  require_inputs_of(inputs, weights_.rows(), where);
  const BlasThreads guard(threads_);
  // (5.12) of Rasmussen and Williams: target i is missed by w_i / P_ii with the variance 1 /
  // P_ii, P = (K + lambda I)^-1.
  const Vector<double> inverse = cholesky_->inverse_diagonal(inputs);
  return {inverse.cwiseInverse().asDiagonal() * weights_(inputs, Eigen::all),
          amplitude_ * inverse.cwiseInverse()};
}

LeaveOneOut Regression::leave_one_out(const LeftOutSets& sets) const {
  if (sets.ends.empty()) return leave_one_out(sets.inputs);
  constexpr const char* where = "Regression::leave_one_out";
  require_fitted_amplitude(amplitude_, where);
  require_inputs_of(sets.inputs, weights_.rows(), where);
  const BlasThreads guard(threads_);
  LeaveOneOut others = left_out_by_sets(sets, weights_(sets.inputs, Eigen::all), nullptr, lambda_,
                                        [&](std::span<const Index> places, Index) -> InverseColumns {
                                          Matrix<double> columns =
                                              cholesky_->solve(unit_columns(weights_.rows(), places));
                                          Matrix<double> own = columns(places, Eigen::all);
                                          return {std::move(columns), std::move(own)};
                                        });
  others.variances *= amplitude_;
  return others;
}

Regression::Parts Regression::parts() const {
  return {cholesky_->upper_factor(), weights_, lambda_, quadratic_form_, amplitude_};
}

Regression Regression::from_parts(Parts parts, int threads) {
  constexpr const char* where = "Regression::from_parts";
  Regression result;
  result.threads_ = numerics::resolve_threads(threads, where);
  const Index n = parts.weights.rows();
  require_targets(parts.weights, n, where);
  require_shape(parts.factor, n, n, where, "the factor");
  require_finite(parts.factor, where, "the factor");
  if (!(parts.factor.diagonal().array() > 0).all())
    throw ArgumentError(fmt::format("{}: the diagonal of the factor must be positive", where));
  require_not_negative(parts.lambda, where, "lambda");
  require_not_negative(parts.quadratic_form, where, "the quadratic form");
  require_not_negative(parts.amplitude, where, "the amplitude");
  result.cholesky_ = std::make_shared<const Cholesky>(std::move(parts.factor));
  result.weights_ = std::move(parts.weights);
  result.lambda_ = parts.lambda;
  result.quadratic_form_ = parts.quadratic_form;
  result.amplitude_ = parts.amplitude;
  return result;
}

Matrix<double> Regression::mean_of(const ConstRef& cross_gram) const {
  require_cross_gram(cross_gram, weights_.rows(), "Regression::mean", "the cross Gram matrix");
  const BlasThreads guard(threads_);
  return multiply(cross_gram, Transpose::no, weights_, Transpose::no);
}

Vector<double> Regression::variance_of(const ConstRef& cross_gram,
                                       const Vector<double>& test_variances) const {
  constexpr const char* where = "Regression::variance";
  require_fitted_amplitude(amplitude_, where);
  require_cross_gram(cross_gram, weights_.rows(), where, "the cross Gram matrix");
  require_test_variances(test_variances, cross_gram.rows(), where);
  const BlasThreads guard(threads_);
  Vector<double> variance = test_variances;
  for_each_row_block(cross_gram.rows(), [&](Index first, Index count) {
    Matrix<double> block = cross_gram.middleRows(first, count);
    // With L v = k_* the variance is k_** - |v|^2 (algorithm 2.1 of Rasmussen and Williams).
    cholesky_->whiten_rows(block);
    variance.segment(first, count) -= block.rowwise().squaredNorm();
  });
  return amplitude_ * without_rounding_below_zero(std::move(variance), test_variances, where);
}

Matrix<double> Regression::covariance_of(const ConstRef& cross_gram, Matrix<double> test_gram) const {
  constexpr const char* where = "Regression::covariance";
  require_fitted_amplitude(amplitude_, where);
  require_cross_gram(cross_gram, weights_.rows(), where, "the cross Gram matrix");
  require_test_gram(test_gram, cross_gram.rows(), where, threads_);
  const BlasThreads guard(threads_);
  // With V = K_* L^-T the covariance is K_** - V V^T.
  Matrix<double> whitened = cross_gram;
  cholesky_->whiten_rows(whitened);
  add_scaled_gram(test_gram, -1, whitened);
  test_gram *= amplitude_;
  return test_gram;
}

}  // namespace widelimit::gp
