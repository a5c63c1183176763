#include "distributed/distributed_regression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "distributed/scalapack.hpp"
#include "gp/checks.hpp"
#include "gp/solvers/flow_leave_one_out.hpp"
#include "gp/solvers/linear_algebra.hpp"
#include "gp/solvers/variances.hpp"
#include "numerics/blas_threads.hpp"
#include "widelimit/gp/not_positive_definite.hpp"

namespace widelimit::distributed {
namespace {

constexpr const char* regression_place = "DistributedRegression";
constexpr int one = 1;

Index checked_size(const Matrix<double>& targets, Index block) {
  gp::require_targets(targets, targets.rows(), regression_place);
  if (targets.rows() < 1 || block < 1)
    throw ArgumentError(fmt::format("{}: expected at least one input and a positive block, got {} and {}",
                                    regression_place, targets.rows(), block));
  return targets.rows();
}

}  // namespace

DistributedRegression::DistributedRegression(const ProcessGrid& grid, const Tile& gram,
                                             const Matrix<double>& targets, const gp::Noise& noise,
                                             Index block, int threads)
    : grid_{grid},
      block_{block},
      threads_{threads},
      factor_{grid, checked_size(targets, block), targets.rows(), block} {
  const auto held = hold_threads();
  factor_.fill(gram, true);
  take_targets(targets, noise);
}

DistributedRegression::DistributedRegression(const ProcessGrid& grid, const EachTile& gram,
                                             const Matrix<double>& targets, const gp::Noise& noise,
                                             Index block, int threads)
    : grid_{grid},
      block_{block},
      threads_{threads},
      factor_{grid, checked_size(targets, block), targets.rows(), block} {
  const auto held = hold_threads();
  factor_.fill_lower(gram);
  take_targets(targets, noise);
}

std::shared_ptr<void> DistributedRegression::hold_threads() const {
  if (threads_ == 0) return nullptr;
  return std::make_shared<numerics::BlasThreads>(threads_);
}

void DistributedRegression::take_targets(const Matrix<double>& targets, const gp::Noise& noise) {
  factorize(noise);
  weights_ = solved(targets);
  quadratic_form_ = targets.cwiseProduct(weights_).sum();
  if (std::holds_alternative<gp::RelativeRegulariser>(noise))
    amplitude_ = quadratic_form_ / static_cast<double>(targets.size());
}

void DistributedRegression::factorize(const gp::Noise& noise) {
  double trace = 0;
  factor_.for_each([&](Index i, Index j, double k) { trace += i == j ? k : 0; });
  const auto n = static_cast<int>(factor_.rows());
  lambda_ = gp::noise_variance(noise, grid_.sum(trace) / n);
  factor_.for_each([&](Index i, Index j, double& k) { k += i == j ? lambda_ : 0; });
  int info = 0;
  pdpotrf_("L", &n, factor_.data(), &one, &one, factor_.descriptor(), &info);
  if (info != 0)
    throw gp::NotPositiveDefinite(
        fmt::format(
            "{}: the {} x {} Gram matrix plus noise variance {:.6g} is not positive definite in double "
            "precision: the leading minor of order {} is not positive; regularise more",
            regression_place, n, n, lambda_, info),
        std::numeric_limits<double>::quiet_NaN(), std::nullopt, info);
  double logs = 0;
  factor_.for_each([&](Index i, Index j, double l) { logs += i == j ? std::log(l) : 0; });
  log_determinant_ = 2 * grid_.sum(logs);
}

Matrix<double> DistributedRegression::solved(const Matrix<double>& right) const {
  BlockCyclicMatrix b(grid_, right.rows(), right.cols(), block_);
  b.for_each([&](Index i, Index j, double& y) { y = right(i, j); });
  const auto n = static_cast<int>(right.rows()), columns = static_cast<int>(right.cols());
  int info = 0;
  pdpotrs_("L", &n, &columns, factor_.data(), &one, &one, factor_.descriptor(), b.data(), &one, &one,
           b.descriptor(), &info);
  Matrix<double> solution = Matrix<double>::Zero(right.rows(), right.cols());
  b.for_each([&](Index i, Index j, double x) { solution(i, j) = x; });
  grid_.add_up(solution.data(), solution.size());
  return solution;
}

template <typename Entry>
Vector<double> DistributedRegression::inverse_forms(Index count, const Entry& entry) const {
  BlockCyclicMatrix b(grid_, weights_.rows(), count, block_);
  b.for_each([&](Index i, Index j, double& x) { x = entry(i, j); });
  const auto rows = static_cast<int>(weights_.rows()), columns = static_cast<int>(count);
  constexpr double factor = 1;
  pdtrsm_("L", "L", "N", "N", &rows, &columns, &factor, factor_.data(), &one, &one, factor_.descriptor(),
          b.data(), &one, &one, b.descriptor());
  Vector<double> forms = Vector<double>::Zero(count);
  b.for_each([&](Index, Index j, double x) { forms(j) += x * x; });
  grid_.add_up(forms.data(), count);
  return forms;
}

Matrix<double> DistributedRegression::rows_of(const gp::CrossGram& cross, Index first, Index count) const {
  std::string failure;
  Matrix<double> rows;
  try {
    if (cross.columns() != weights_.rows())
      throw ArgumentError(
          fmt::format("{}: the cross Gram matrix must be [any number of rows, {}], got [{}, {}]",
                      regression_place, weights_.rows(), cross.rows(), cross.columns()));
    rows = cross.block(first, count);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  grid_.agree(failure);
  return rows;
}

Matrix<double> DistributedRegression::mean(const gp::CrossGram& cross) const {
  const auto held = hold_threads();
  Matrix<double> result(cross.rows(), weights_.cols());
  gp::for_each_row_block(cross.rows(), [&](Index first, Index count) {
    result.middleRows(first, count) =
        gp::multiply(rows_of(cross, first, count), gp::Transpose::no, weights_, gp::Transpose::no);
  });
  return result;
}

Vector<double> DistributedRegression::variance(const gp::CrossGram& cross,
                                               const Vector<double>& test_variances) const {
  const auto held = hold_threads();
  gp::require_fitted_amplitude(amplitude_, regression_place);
  const Index n_test = cross.rows();
  gp::require_test_variances(test_variances, n_test, regression_place);
  Vector<double> explained(n_test);
  gp::for_each_row_block(n_test, [&](Index first, Index count) {
    const Matrix<double> k = rows_of(cross, first, count);
    explained.segment(first, count) = inverse_forms(count, [&](Index i, Index j) { return k(j, i); });
  });
  return amplitude_ *
         gp::without_rounding_below_zero(test_variances - explained, test_variances, regression_place);
}

Vector<double> DistributedRegression::flow_variance(const gp::KernelOperator& nngp,
                                                    const gp::CrossGram& nngp_cross,
                                                    const gp::CrossGram& ntk_cross,
                                                    const Vector<double>& nngp_test_variances) const {
  const auto held = hold_threads();
  gp::require_fitted_amplitude(amplitude_, regression_place);
  gp::require_test_variances(nngp_test_variances, ntk_cross.rows(), regression_place);
  Vector<double> variance = nngp_test_variances;
  gp::for_each_row_block(ntk_cross.rows(), [&](Index first, Index count) {
    const Matrix<double> b = solved(rows_of(ntk_cross, first, count).transpose());
    Matrix<double> left = nngp.multiply(b);
    left -= 2 * rows_of(nngp_cross, first, count).transpose();
    variance.segment(first, count) += left.cwiseProduct(b).colwise().sum().transpose();
  });
  return amplitude_ *
         gp::without_rounding_below_zero(std::move(variance), nngp_test_variances, regression_place);
}

gp::LeaveOneOut DistributedRegression::leave_one_out(std::span<const Index> inputs) const {
  const auto held = hold_threads();
  gp::require_fitted_amplitude(amplitude_, regression_place);
  gp::require_inputs_of(inputs, weights_.rows(), regression_place);
  const auto chosen = static_cast<Index>(inputs.size());
  Vector<double> inverse_diagonal(chosen);
  gp::for_each_row_block(chosen, [&](Index first, Index count) {
    inverse_diagonal.segment(first, count) = inverse_forms(count, [&](Index i, Index j) {
      return i == inputs[static_cast<std::size_t>(first + j)] ? 1.0 : 0.0;
    });
  });
  const Vector<double> variances = inverse_diagonal.cwiseInverse();
  return {variances.asDiagonal() * weights_(inputs, Eigen::all), amplitude_ * variances};
}

gp::LeaveOneOut DistributedRegression::flow_leave_one_out(const gp::KernelOperator& nngp,
                                                          std::span<const Index> inputs) const {
  const auto held = hold_threads();
  gp::require_inputs_of(inputs, weights_.rows(), regression_place);
  constexpr Index columns = 512;
  return gp::solved_leave_one_out(nngp, weights_, lambda_, inputs, columns,
                                  [this](const Matrix<double>& b) { return solved(b); });
}

void DistributedRegression::set_amplitude(double amplitude) {
  gp::require_amplitude(amplitude, regression_place);
  amplitude_ = amplitude;
}

double DistributedRegression::log_marginal_likelihood() const {
  gp::require_fitted_amplitude(amplitude_, regression_place);
  const auto n = static_cast<double>(weights_.rows()), outputs = static_cast<double>(weights_.cols());
  return -0.5 * (quadratic_form_ / amplitude_ +
                 outputs * (log_determinant_ + n * std::log(2 * std::numbers::pi * amplitude_)));
}

}  // namespace widelimit::distributed
