#include "widelimit/gp/iterative_regression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gp/checks.hpp"
#include "gp/linear_algebra.hpp"
#include "gp/variances.hpp"
#include "widelimit/error.hpp"

namespace widelimit::gp {

using Eigen::Index;

IterativeRegression IterativeRegression::fit(std::shared_ptr<const KernelOperator> gram,
                                             const Matrix<double>& targets, const Noise& noise,
                                             const ConjugateGradientOptions& options) {
  require_targets(targets, gram->size(), "IterativeRegression::fit");
  IterativeRegression result;
  result.gram_ = std::move(gram);
  result.options_ = options;
  result.lambda_ = gp::noise_variance(noise, result.gram_->diagonal().mean());
  result.weights_ = solve_shifted(*result.gram_, targets, {result.lambda_}, options).solutions[0];
  if (std::holds_alternative<RelativeRegulariser>(noise))
    result.amplitude_ = targets.cwiseProduct(result.weights_).sum() / static_cast<double>(targets.size());
  return result;
}

IterativeRegression IterativeRegression::with_amplitude(double amplitude) const {
  require_amplitude(amplitude, "IterativeRegression::with_amplitude");
  IterativeRegression result = *this;
  result.amplitude_ = amplitude;
  return result;
}

Matrix<double> IterativeRegression::mean(const Matrix<double>& cross_gram) const {
  require_cross_gram(cross_gram, weights_.rows(), "IterativeRegression::mean", "the cross Gram matrix");
  return multiply(cross_gram, Transpose::no, weights_, Transpose::no);
}

Matrix<double> IterativeRegression::responses(const Matrix<double>& cross_gram) const {
  require_cross_gram(cross_gram, weights_.rows(), "IterativeRegression::responses", "the cross Gram matrix");
  const Index n = weights_.rows(), block = std::min<Index>(256, n);
  Matrix<double> result(n, cross_gram.rows());
  for (Index first = 0; first < cross_gram.rows(); first += block) {
    const Index count = std::min(block, cross_gram.rows() - first);
    const Matrix<double> b = cross_gram.middleRows(first, count).transpose();
    result.middleCols(first, count) = solve_shifted(*gram_, b, {lambda_}, options_).solutions[0];
  }
  return result;
}

Vector<double> IterativeRegression::variance(const Matrix<double>& cross_gram,
                                             const Vector<double>& test_variances) const {
  constexpr const char* where = "IterativeRegression::variance";
  require_cross_gram(cross_gram, weights_.rows(), where, "the cross Gram matrix");
  require_test_variances(test_variances, cross_gram.rows(), where);
  Vector<double> variance = test_variances;
  for_each_row_block(cross_gram.rows(), [&](Index first, Index count) {
    const Matrix<double> block = cross_gram.middleRows(first, count);
    variance.segment(first, count) -=
        block.transpose().cwiseProduct(responses(block)).colwise().sum().transpose();
  });
  return amplitude_ * without_rounding_below_zero(std::move(variance), test_variances, where);
}

Vector<double> IterativeRegression::flow_variance(const KernelOperator& nngp,
                                                  const Matrix<double>& nngp_cross,
                                                  const Matrix<double>& ntk_cross,
                                                  const Vector<double>& nngp_test_variances) const {
  constexpr const char* where = "IterativeRegression::flow_variance";
  require_cross_gram(ntk_cross, weights_.rows(), where, "the cross NTK");
  require_shape(nngp_cross, ntk_cross.rows(), weights_.rows(), where, "the cross NNGP Gram matrix");
  require_finite(nngp_cross, where, "the cross NNGP Gram matrix");
  require_test_variances(nngp_test_variances, ntk_cross.rows(), where);
  if (nngp.size() != weights_.rows())
    throw ArgumentError(fmt::format("{}: the NNGP must be as large as the NTK, {}, got {}", where,
                                    weights_.rows(), nngp.size()));
  const Matrix<double> b = responses(ntk_cross);
  const Matrix<double> left = nngp.multiply(b) - 2 * nngp_cross.transpose();
  const Vector<double> variance = nngp_test_variances + left.cwiseProduct(b).colwise().sum().transpose();
  return amplitude_ * without_rounding_below_zero(variance, nngp_test_variances, where);
}

}  // namespace widelimit::gp
