#include "distributed/distributed_regression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "distributed/scalapack.hpp"
#include "gp/checks.hpp"
#include "gp/variances.hpp"
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
                                             Index block)
    : grid_{grid},
      block_{block},
      factor_{grid, checked_size(targets, block), targets.rows(), block},
      weights_{Matrix<double>::Zero(targets.rows(), targets.cols())} {
  factor_.fill(gram, true);
  factorize(noise);
  solve(targets);
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

void DistributedRegression::solve(const Matrix<double>& targets) {
  BlockCyclicMatrix b(grid_, targets.rows(), targets.cols(), block_);
  b.for_each([&](Index i, Index j, double& y) { y = targets(i, j); });
  const auto n = static_cast<int>(targets.rows()), outputs = static_cast<int>(targets.cols());
  int info = 0;
  pdpotrs_("L", &n, &outputs, factor_.data(), &one, &one, factor_.descriptor(), b.data(), &one, &one,
           b.descriptor(), &info);
  b.for_each([&](Index i, Index j, double w) { weights_(i, j) = w; });
  grid_.add_up(weights_.data(), weights_.size());
}

Matrix<double> DistributedRegression::mean(const Tile& cross, Index n_test) const {
  Matrix<double> result = Matrix<double>::Zero(n_test, weights_.cols());
  std::string failure;
  try {
    for (Index first = grid_.rank() * block_; first < n_test; first += grid_.ranks() * block_) {
      const Index count = std::min(block_, n_test - first);
      const Matrix<double> k = cross(first, count, 0, weights_.rows());
      gp::require_shape(k, count, weights_.rows(), regression_place, "the tile of the cross Gram matrix");
      gp::require_finite(k, regression_place, "the cross Gram matrix");
      result.middleRows(first, count).noalias() = k * weights_;
    }
  } catch (const std::exception& error) {
    failure = error.what();
  }
  grid_.agree(failure);
  grid_.add_up(result.data(), result.size());
  return result;
}

Vector<double> DistributedRegression::variance(const Tile& cross,
                                               const Vector<double>& test_variances) const {
  const Index n = weights_.rows(), n_test = test_variances.size();
  gp::require_test_variances(test_variances, n_test, regression_place);
  const Index stretch = block_ * std::max<Index>(2, grid_.shape().columns);
  Vector<double> explained = Vector<double>::Zero(n_test);
  for (Index first = 0; first < n_test; first += stretch) {
    const Index count = std::min(stretch, n_test - first);
    BlockCyclicMatrix b(grid_, n, count, block_);
    b.fill(
        [&](Index row, Index rows, Index column, Index columns) -> Matrix<double> {
          return cross(first + column, columns, row, rows).transpose();
        },
        false);
    const auto rows = static_cast<int>(n), columns = static_cast<int>(count);
    constexpr double factor = 1;
    pdtrsm_("L", "L", "N", "N", &rows, &columns, &factor, factor_.data(), &one, &one, factor_.descriptor(),
            b.data(), &one, &one, b.descriptor());
    b.for_each([&](Index, Index j, double x) { explained(first + j) += x * x; });
  }
  grid_.add_up(explained.data(), n_test);
  return amplitude_ *
         gp::without_rounding_below_zero(test_variances - explained, test_variances, regression_place);
}

double DistributedRegression::log_marginal_likelihood() const {
  const auto n = static_cast<double>(weights_.rows()), outputs = static_cast<double>(weights_.cols());
  const double misfit = quadratic_form_ > 0 ? quadratic_form_ / amplitude_ : 0;
  return -0.5 * (misfit + outputs * (log_determinant_ + n * std::log(2 * std::numbers::pi * amplitude_)));
}

}  // namespace widelimit::distributed
