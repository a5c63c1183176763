#include "widelimit/gp/gradient_flow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "gp/solvers/left_out_by_sets.hpp"
#include "gp/solvers/linear_algebra.hpp"
#include "gp/solvers/variances.hpp"
#include "numerics/blas_threads.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/not_positive_definite.hpp"

namespace widelimit::gp {

using Eigen::Index;
using numerics::BlasThreads;

struct GradientFlow::Decomposition {
  Matrix<double> nngp;
  SymmetricEigen ntk;  // without the regulariser; eigenvalues that are negative by rounding are set to 0
};

namespace {

[[noreturn]] void report_not_positive_definite(double smallest, double lambda, Index n, double mean_diagonal,
                                               const char* where, const char* consequence) {
  const std::optional<double> enough = sufficient_regulariser(smallest, n, mean_diagonal);
  const std::string remedy = enough ? fmt::format("a relative regulariser of {:.6g} is enough", *enough)
                                    : "its diagonal is zero, give an AbsoluteNoise";
  throw NotPositiveDefinite(
      fmt::format("{}: the {} x {} NTK plus regulariser variance {:.6g} is not positive definite "
                  "in double precision: the smallest eigenvalue without it is {:.6g}, {}; {}",
                  where, n, n, lambda, smallest, consequence, remedy),
      smallest, enough);
}

constexpr const char* flow_fit_place = "GradientFlow::fit";

void require_flow_nngp(const Matrix<double>& nngp, Index n, int threads) {
  require_shape(nngp, n, n, flow_fit_place, "the NNGP Gram matrix (as large as the NTK)");
  require_gram(nngp, flow_fit_place, "the NNGP Gram matrix", threads);
}

// Rows of B_t from rows of T_*: T_* Q g Q^T.
Matrix<double> response(const ConstMatrixRef& ntk_rows, const Matrix<double>& eigenvectors,
                        const Vector<double>& growth) {
  Matrix<double> projected = multiply(ntk_rows, Transpose::no, eigenvectors, Transpose::yes);
  projected.array().rowwise() *= growth.transpose().array();
  return multiply(projected, Transpose::no, eigenvectors, Transpose::no);
}

// Rows of Q diag(values) Q^T.
Matrix<double> spectral_rows(const Matrix<double>& eigenvectors, const Vector<double>& values,
                             std::span<const Index> places) {
  Matrix<double> scaled = eigenvectors(Eigen::all, places).transpose();
  scaled.array().rowwise() *= values.transpose().array();
  return multiply(scaled, Transpose::no, eigenvectors, Transpose::no);
}

}  // namespace

GradientFlow GradientFlow::fit(DoubleMatrix nngp, DoubleMatrix ntk, const Matrix<double>& targets,
                               const std::optional<Noise>& regulariser, double learning_rate, int threads) {
  require_flow_nngp(nngp.matrix(), ntk.matrix().rows(), numerics::resolve_threads(threads, flow_fit_place));
  return fit_late([&nngp] { return std::move(nngp); }, std::move(ntk), targets, regulariser, learning_rate,
                  threads);
}

GradientFlow GradientFlow::fit_late(const std::function<DoubleMatrix()>& nngp, DoubleMatrix ntk,
                                    const Matrix<double>& targets, const std::optional<Noise>& regulariser,
                                    double learning_rate, int threads) {
  constexpr const char* where = flow_fit_place;
  GradientFlow result;
  result.threads_ = numerics::resolve_threads(threads, where);
  if (!(learning_rate > 0) || !std::isfinite(learning_rate))
    throw ArgumentError(
        fmt::format("{}: the learning rate must be positive and finite, got {}", where, learning_rate));
  result.learning_rate_ = learning_rate;
  Matrix<double> t = std::move(ntk).take();
  const Index n = t.rows();
  require_gram(t, where, "the NTK", result.threads_);
  require_targets(targets, t.rows(), where);
  result.mean_diagonal_ = t.diagonal().mean();
  if (regulariser) result.regulariser_variance_ = noise_variance(*regulariser, result.mean_diagonal_);

  const BlasThreads guard(result.threads_);
  // Of small matrices the workspace does not matter, and divide and conquer is a little faster.
  constexpr Index small = 1024;
  // The eigenvectors serve all times; robust representations need less workspace, but more time where n is small.
  SymmetricEigen eigen = symmetric_eigen(
      std::move(t), where, n <= small ? EigenSolver::by_size : EigenSolver::robust_representations);
  const double lambda = result.regulariser_variance_;
  // An eigenvalue below 0 by more than its rounding would make exp(-eta l t) grow without bound.
  if (eigen.values(0) + lambda < -rank_tolerance(eigen.values))
    report_not_positive_definite(eigen.values(0), lambda, n, result.mean_diagonal_, where,
                                 "so that the flow diverges");
  if (lambda == 0) eigen.values = eigen.values.cwiseMax(0);
  result.projected_targets_ = multiply(eigen.vectors, Transpose::no, targets, Transpose::no);
  Matrix<double> k = nngp().take();
  require_flow_nngp(k, n, result.threads_);
  result.decomposition_ =
      std::make_shared<const Decomposition>(Decomposition{std::move(k), std::move(eigen)});
  return result;
}

GradientFlow GradientFlow::with_amplitude(double amplitude) const {
  require_amplitude(amplitude, "GradientFlow::with_amplitude");
  GradientFlow result = *this;
  result.amplitude_ = amplitude;
  return result;
}

LeaveOneOut GradientFlow::leave_one_out() const {
  return leave_one_out(all_inputs(projected_targets_.rows()));
}

LeaveOneOut GradientFlow::leave_one_out(std::span<const Index> inputs) const {
  constexpr const char* where = "GradientFlow::leave_one_out";
  const Vector<double> inverse = growth(infinite_time, where);
  require_inputs_of(inputs, inverse.size(), where);
  const BlasThreads guard(threads_);
  const Matrix<double>& vectors = decomposition_->ntk.vectors;
  const auto chosen = static_cast<Index>(inputs.size());
  LeaveOneOut result{weights(infinite_time)(inputs, Eigen::all), Vector<double>(chosen)};
  for_each_row_block(chosen, [&](Index first, Index count) {
    // Only the rows of G = (T + lambda I)^-1 for these inputs are formed.
    const auto places = inputs.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    const Matrix<double> g = spectral_rows(vectors, inverse, places);
    const Matrix<double> left = multiply(g, Transpose::no, decomposition_->nngp, Transpose::no);
    for (Index i = 0; i < count; ++i) {
      const double g_ii = g(i, places[static_cast<std::size_t>(i)]),
                   variance = std::max(left.row(i).dot(g.row(i)), 0.0);
      result.residuals.row(first + i) /= g_ii;
      result.variances(first + i) = amplitude_ * (variance / (g_ii * g_ii) + regulariser_variance_);
    }
  });
  return result;
}

LeaveOneOut GradientFlow::leave_one_out(const LeftOutSets& sets) const {
  if (sets.ends.empty()) return leave_one_out(sets.inputs);
  constexpr const char* where = "GradientFlow::leave_one_out";
  const Vector<double> inverse = growth(infinite_time, where);
  require_inputs_of(sets.inputs, inverse.size(), where);
  const BlasThreads guard(threads_);
  LeaveOneOut others = left_out_by_sets(
      sets, weights(infinite_time)(sets.inputs, Eigen::all), &decomposition_->nngp, regulariser_variance_,
      [&](std::span<const Index> places, Index) -> InverseColumns {
        Matrix<double> columns = spectral_rows(decomposition_->ntk.vectors, inverse, places).transpose();
        Matrix<double> own = columns(places, Eigen::all);
        return {std::move(columns), std::move(own)};
      });
  others.variances *= amplitude_;
  return others;
}

double GradientFlow::leave_one_out_amplitude() const {
  return with_amplitude(1).leave_one_out().most_likely_scale("GradientFlow::leave_one_out_amplitude");
}

Matrix<double> GradientFlow::weights(double time) const { return weights_of(time, "GradientFlow::weights"); }

Matrix<double> GradientFlow::weights_of(double time, const char* where) const {
  const BlasThreads guard(threads_);
  const Matrix<double> scaled = growth(time, where).asDiagonal() * projected_targets_;
  return multiply(decomposition_->ntk.vectors, Transpose::yes, scaled, Transpose::no);
}

GradientFlow::Parts GradientFlow::parts() const {
  return {decomposition_->nngp, decomposition_->ntk.values, decomposition_->ntk.vectors,
          projected_targets_,   regulariser_variance_,      amplitude_,
          learning_rate_};
}

GradientFlow GradientFlow::from_parts(Parts parts, int threads) {
  constexpr const char* where = "GradientFlow::from_parts";
  GradientFlow result;
  result.threads_ = numerics::resolve_threads(threads, where);
  const Index n = parts.projected_targets.rows();
  require_targets(parts.projected_targets, n, where);
  require_shape(parts.nngp, n, n, where, "the NNGP Gram matrix");
  require_gram(parts.nngp, where, "the NNGP Gram matrix", result.threads_);
  require_shape(parts.eigenvectors, n, n, where, "the eigenvectors");
  require_finite(parts.eigenvectors, where, "the eigenvectors");
  require_shape(parts.eigenvalues, n, 1, where, "the eigenvalues");
  require_finite(parts.eigenvalues, where, "the eigenvalues");
  require_not_negative(parts.lambda, where, "lambda");
  require_not_negative(parts.amplitude, where, "the amplitude");
  require_not_negative(parts.learning_rate, where, "the learning rate");
  result.mean_diagonal_ = parts.eigenvalues.mean();
  result.projected_targets_ = std::move(parts.projected_targets);
  result.regulariser_variance_ = parts.lambda;
  result.amplitude_ = parts.amplitude;
  result.learning_rate_ = parts.learning_rate;
  result.decomposition_ = std::make_shared<const Decomposition>(
      Decomposition{std::move(parts.nngp), {std::move(parts.eigenvalues), std::move(parts.eigenvectors)}});
  return result;
}

// eta t, the only form in which the two enter.
double GradientFlow::reachable_rate(double time, const char* where) const {
  // The condition is written so that NaN fails it, too.
  if (!(time >= 0))
    throw ArgumentError(fmt::format("{}: time must be 0 or more, or infinite_time, got {}", where, time));
  const double rate = learning_rate_ * time;
  const Vector<double>& values = decomposition_->ntk.values;
  if (std::isinf(rate) && values(0) + regulariser_variance_ <= rank_tolerance(values))
    report_not_positive_definite(values(0), regulariser_variance_, values.size(), mean_diagonal_, where,
                                 "so that the flow has no limit; take a finite time or regularise");
  return rate;
}

// (1 - exp(-eta l t)) / l for the eigenvalues l of T + lambda I: what the flow makes of a unit of target. An
// l below zero is zero but for rounding, see fit().
Vector<double> GradientFlow::growth(double time, const char* where) const {
  const double rate = reachable_rate(time, where);
  return decomposition_->ntk.values.unaryExpr([&](double eigenvalue) {
    const double l = eigenvalue + regulariser_variance_;
    if (std::isinf(rate)) return 1 / l;
    return l <= 0 ? rate : -std::expm1(-rate * l) / l;
  });
}

// Eigenvalues of I - B_t on the training inputs: 1 - w (1 - exp(-eta l t)) / l with l = w + lambda,
// rearranged so that nothing cancels for well-learnt directions.
Vector<double> GradientFlow::residual(double time, const char* where) const {
  const double rate = reachable_rate(time, where);
  return decomposition_->ntk.values.unaryExpr([&](double eigenvalue) {
    const double l = eigenvalue + regulariser_variance_;
    // For an eigenvalue of 0 without regulariser, this is the limit of the expression below.
    if (l <= 0) return 1 - eigenvalue * rate;
    return (regulariser_variance_ + eigenvalue * std::exp(-rate * l)) / l;
  });
}

Matrix<double> GradientFlow::mean_of(double time, const ConstRef& ntk_cross) const {
  constexpr const char* where = "GradientFlow::mean";
  require_cross_gram(ntk_cross, projected_targets_.rows(), where, "the cross NTK");
  const BlasThreads guard(threads_);
  return multiply(ntk_cross, Transpose::no, weights_of(time, where), Transpose::no);
}

Matrix<double> GradientFlow::train_mean(double time) const {
  const BlasThreads guard(threads_);
  const Vector<double> factors =
      growth(time, "GradientFlow::train_mean").cwiseProduct(decomposition_->ntk.values);
  const Matrix<double> scaled = factors.asDiagonal() * projected_targets_;
  return multiply(decomposition_->ntk.vectors, Transpose::yes, scaled, Transpose::no);
}

Matrix<double> GradientFlow::covariance_of(double time, const ConstRef& nngp_cross, const ConstRef& ntk_cross,
                                           Matrix<double> nngp_test) const {
  constexpr const char* where = "GradientFlow::covariance";
  const Index n = projected_targets_.rows();
  require_cross_gram(ntk_cross, n, where, "the cross NTK");
  require_shape(nngp_cross, ntk_cross.rows(), n, where, "the cross NNGP Gram matrix");
  require_finite(nngp_cross, where, "the cross NNGP Gram matrix");
  require_test_gram(nngp_test, ntk_cross.rows(), where, threads_);
  const BlasThreads guard(threads_);
  const Matrix<double> b = response(ntk_cross, decomposition_->ntk.vectors, growth(time, where));
  // covariance = K_** + S + S^T with S = (B K / 2 - K_*) B^T: one product instead of two.
  Matrix<double> left = multiply(b, Transpose::no, decomposition_->nngp, Transpose::no);
  left = 0.5 * left - nngp_cross;
  const Matrix<double> s = multiply(left, Transpose::no, b, Transpose::yes);
  nngp_test += s + s.transpose();
  nngp_test *= amplitude_;
  mirror_upper_triangle(nngp_test);
  return nngp_test;
}

Vector<double> GradientFlow::variance_of(double time, const ConstRef& nngp_cross, const ConstRef& ntk_cross,
                                         const Vector<double>& nngp_test_variances) const {
  constexpr const char* where = "GradientFlow::variance";
  const Index n = projected_targets_.rows();
  require_cross_gram(ntk_cross, n, where, "the cross NTK");
  require_shape(nngp_cross, ntk_cross.rows(), n, where, "the cross NNGP Gram matrix");
  require_finite(nngp_cross, where, "the cross NNGP Gram matrix");
  require_test_variances(nngp_test_variances, ntk_cross.rows(), where);
  const BlasThreads guard(threads_);
  const Vector<double> factors = growth(time, where);
  Vector<double> variance = nngp_test_variances;
  for_each_row_block(ntk_cross.rows(), [&](Index first, Index count) {
    const Matrix<double> b =
        response(ntk_cross.middleRows(first, count), decomposition_->ntk.vectors, factors);
    Matrix<double> left = multiply(b, Transpose::no, decomposition_->nngp, Transpose::no);
    // This is the diagonal of B K B^T - 2 K_* B^T, row by row.
    left -= 2 * nngp_cross.middleRows(first, count);
    variance.segment(first, count) += left.cwiseProduct(b).rowwise().sum();
  });
  return amplitude_ * without_rounding_below_zero(std::move(variance), nngp_test_variances, where);
}

Matrix<double> GradientFlow::train_covariance(double time) const {
  const Index n = projected_targets_.rows();
  const Vector<double> factors = residual(time, "GradientFlow::train_covariance");
  // Networks at initialisation: nothing would be gained from a product with the unit matrix.
  if (time == 0) return amplitude_ * decomposition_->nngp;
  const BlasThreads guard(threads_);
  const Matrix<double> r = spectral_rows(decomposition_->ntk.vectors, factors, all_inputs(n));
  // R (K / 2) R plus its transpose: symmetric to the last bit.
  const Matrix<double> half =
      multiply(0.5 * amplitude_ * multiply(r, Transpose::no, decomposition_->nngp, Transpose::no),
               Transpose::no, r, Transpose::no);
  return half + half.transpose();
}

Vector<double> GradientFlow::train_variance(double time) const {
  const Index n = projected_targets_.rows();
  constexpr const char* where = "GradientFlow::train_variance";
  const Vector<double> factors = residual(time, where);
  if (time == 0) return amplitude_ * decomposition_->nngp.diagonal();
  const BlasThreads guard(threads_);
  Vector<double> variance(n);
  const std::vector<Index> all = all_inputs(n);
  for_each_row_block(n, [&](Index first, Index count) {
    const Matrix<double> r = spectral_rows(
        decomposition_->ntk.vectors, factors,
        std::span(all).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)));
    const Matrix<double> left = multiply(r, Transpose::no, decomposition_->nngp, Transpose::no);
    variance.segment(first, count) = left.cwiseProduct(r).rowwise().sum();
  });
  return amplitude_ *
         without_rounding_below_zero(std::move(variance), decomposition_->nngp.diagonal(), where);
}

}  // namespace widelimit::gp
