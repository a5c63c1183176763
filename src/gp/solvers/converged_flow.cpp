#include "widelimit/gp/converged_flow.hpp"

#include <optional>
#include <span>
#include <utility>

#include "gp/checks.hpp"
#include "gp/solvers/left_out_by_sets.hpp"
#include "gp/solvers/linear_algebra.hpp"
#include "gp/solvers/variances.hpp"
#include "numerics/blas_threads.hpp"
#include "widelimit/error.hpp"

namespace widelimit::gp {

using Eigen::Index;
using numerics::BlasThreads;

struct ConvergedFlow::Matrices {
  Matrix<double> nngp;
  Matrix<double> inverse;          ///< (T + lambda I)^-1, or empty:
  std::optional<Cholesky> factor;  ///< then that of T + lambda I.
};

namespace {

/// Columns of (T + lambda I)^-1.
template <typename Matrices>
Matrix<double> inverse_columns(const Matrices& of, std::span<const Index> places) {
  if (!of.factor) return of.inverse(Eigen::all, places);
  return of.factor->solve(unit_columns(of.nngp.rows(), places));
}

}  // namespace

ConvergedFlow ConvergedFlow::fit(DoubleMatrix nngp, DoubleMatrix ntk, const Matrix<double>& targets,
                                 const Noise& regulariser, int threads, Holds holds) {
  constexpr const char* where = "ConvergedFlow::fit";
  ConvergedFlow result;
  result.threads_ = numerics::resolve_threads(threads, where);
  Matrix<double> k = std::move(nngp).take(), t = std::move(ntk).take();
  require_gram(t, where, "the NTK", result.threads_);
  require_shape(k, t.rows(), t.rows(), where, "the NNGP Gram matrix (as large as the NTK)");
  require_gram(k, where, "the NNGP Gram matrix", result.threads_);
  require_targets(targets, t.rows(), where);
  result.lambda_ = noise_variance(regulariser, t.diagonal().mean());
  const BlasThreads guard(result.threads_);
  Cholesky cholesky(std::move(t), result.lambda_, where);
  result.weights_ = cholesky.solve(targets);
  Matrices matrices{std::move(k), {}, std::nullopt};
  if (holds == Holds::inverse)
    matrices.inverse = std::move(cholesky).take_inverse(where);
  else
    matrices.factor = std::move(cholesky);
  result.matrices_ = std::make_shared<const Matrices>(std::move(matrices));
  return result;
}

Matrix<double> ConvergedFlow::response(const Matrix<double>& x) const {
  if (matrices_->factor) return matrices_->factor->solve(x);
  return multiply(matrices_->inverse, Transpose::no, x, Transpose::no);
}

ConvergedFlow ConvergedFlow::with_amplitude(double amplitude) const {
  require_amplitude(amplitude, "ConvergedFlow::with_amplitude");
  ConvergedFlow result = *this;
  result.amplitude_ = amplitude;
  return result;
}

LeaveOneOut ConvergedFlow::leave_one_out() const { return leave_one_out(all_inputs(weights_.rows())); }

LeaveOneOut ConvergedFlow::leave_one_out(std::span<const Index> inputs) const {
  require_inputs_of(inputs, weights_.rows(), "ConvergedFlow::leave_one_out");
  const BlasThreads guard(threads_);
  const auto chosen = static_cast<Index>(inputs.size());
  Vector<double> g(chosen), variances(chosen);
  for_each_row_block(chosen, [&](Index first, Index count) {
    const auto places = inputs.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    const Matrix<double> columns = inverse_columns(*matrices_, places);
    // g is the diagonal of the inverse at the chosen inputs.
    for (Index j = 0; j < count; ++j) g(first + j) = columns(places[static_cast<std::size_t>(j)], j);
    // Rounding may take a quadratic form that is nearly 0 below it.
    variances.segment(first, count) = quadratic_forms(matrices_->nngp, columns).cwiseMax(0);
  });
  // r_i = (Gy)_i / G_ii and v_i = (GKG)_ii / G_ii^2 of docs/theory/inference.md, section 3, with G the inverse.
  return {g.cwiseInverse().asDiagonal() * weights_(inputs, Eigen::all),
          amplitude_ * (variances.array() / g.array().square() + lambda_)};
}

LeaveOneOut ConvergedFlow::leave_one_out(const LeftOutSets& sets) const {
  if (sets.ends.empty()) return leave_one_out(sets.inputs);
  require_inputs_of(sets.inputs, weights_.rows(), "ConvergedFlow::leave_one_out");
  const BlasThreads guard(threads_);
  LeaveOneOut others = left_out_by_sets(sets, weights_(sets.inputs, Eigen::all), &matrices_->nngp, lambda_,
                                        [&](std::span<const Index> places, Index) -> InverseColumns {
                                          Matrix<double> columns = inverse_columns(*matrices_, places);
                                          Matrix<double> own = columns(places, Eigen::all);
                                          return {std::move(columns), std::move(own)};
                                        });
  others.variances *= amplitude_;
  return others;
}

double ConvergedFlow::leave_one_out_amplitude() const {
  return with_amplitude(1).leave_one_out().most_likely_scale("ConvergedFlow::leave_one_out_amplitude");
}

Matrix<double> ConvergedFlow::mean(const DoubleMatrix& ntk_cross) const {
  require_cross_gram(ntk_cross.matrix(), weights_.rows(), "ConvergedFlow::mean", "the cross NTK");
  const BlasThreads guard(threads_);
  return multiply(ntk_cross.matrix(), Transpose::no, weights_, Transpose::no);
}

Vector<double> ConvergedFlow::variance(const DoubleMatrix& nngp_cross, const DoubleMatrix& ntk_cross,
                                       const Vector<double>& nngp_test_variances) const {
  constexpr const char* where = "ConvergedFlow::variance";
  const Index n = weights_.rows(), n_test = ntk_cross.matrix().rows();
  require_cross_gram(ntk_cross.matrix(), n, where, "the cross NTK");
  require_shape(nngp_cross.matrix(), n_test, n, where, "the cross NNGP Gram matrix");
  require_finite(nngp_cross.matrix(), where, "the cross NNGP Gram matrix");
  require_test_variances(nngp_test_variances, n_test, where);
  const BlasThreads guard(threads_);
  Vector<double> variance = nngp_test_variances;
  for_each_row_block(n_test, [&](Index first, Index count) {
    // docs/theory/inference.md, section 3, for t = infinity: row by row K_** + b^T K b - 2 b^T K_*^T.
    const Matrix<double> b = response(ntk_cross.matrix().middleRows(first, count).transpose());
    const Matrix<double> k = nngp_cross.matrix().middleRows(first, count).transpose();
    variance.segment(first, count) +=
        quadratic_forms(matrices_->nngp, b) - 2 * b.cwiseProduct(k).colwise().sum().transpose();
  });
  return amplitude_ * without_rounding_below_zero(std::move(variance), nngp_test_variances, where);
}

}  // namespace widelimit::gp
