#include "gp/solvers/low_rank_preconditioner.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "gp/solvers/linear_algebra.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::gp {
namespace {

/// The first steps of a shuffle: `count` different ones of n inputs, the same for every matrix of a size.
std::vector<Index> random_choice(Index n, Index count) {
  numerics::RandomStream stream(0);
  std::vector<Index> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), Index{0});
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    // uniform() can round up, so the place is held within the list.
    const double place = stream.uniform() * static_cast<double>(all.size() - i);
    std::swap(all[i], all[std::min(i + static_cast<std::size_t>(place), all.size() - 1)]);
  }
  all.resize(static_cast<std::size_t>(count));
  return all;
}

}  // namespace

// With C the columns and W = E diag(w) E^T their own rows, C W^-1 C^T = F F^T for F = C E w^-1/2, which has the
// eigenvectors F V S^-1/2 for F^T F = V S V^T. What cannot be told from 0 is left out.
LowRankKernel LowRankKernel::of(const KernelOperator& gram, Index columns) {
  constexpr const char* where = "low-rank preconditioner";
  const double trace = gram.diagonal().sum();
  const auto mean = [&](double rest) { return std::max(rest, 0.0) / static_cast<double>(gram.size()); };
  if (columns == 0) return {Matrix<double>(gram.size(), 0), Vector<double>(0), mean(trace)};
  const std::vector<Index> chosen = random_choice(gram.size(), columns);
  Matrix<double> c = gram.columns(chosen);
  const auto reduce = [&](const Matrix<double>& from, const SymmetricEigen& eigen, double smallest) {
    const Index kept = (eigen.values.array() > smallest).count();
    const Matrix<double> scaled =
        eigen.values.tail(kept).cwiseSqrt().cwiseInverse().asDiagonal() * eigen.vectors.bottomRows(kept);
    return multiply(from, Transpose::no, scaled, Transpose::yes);
  };
  const SymmetricEigen own = symmetric_eigen(c(chosen, Eigen::all), where);
  const Matrix<double> f = reduce(c, own, 10 * rank_tolerance(own.values));
  c = Matrix<double>();
  const SymmetricEigen eigen = symmetric_eigen(multiply(f, Transpose::yes, f, Transpose::no), where);
  constexpr double smallest_share = 1e-8;  // Below it, vectors are not orthogonal enough.
  const double smallest = smallest_share * std::max(eigen.values(eigen.values.size() - 1), 0.0);
  const Index kept = (eigen.values.array() > smallest).count();
  return {reduce(f, eigen, smallest), eigen.values.tail(kept), mean(trace - eigen.values.tail(kept).sum())};
}

LowRankPreconditioner::LowRankPreconditioner(const LowRankKernel& kernel, double lambda)
    : kernel_{&kernel},
      // H^2 is the inverse of U S U^T + (tau + lambda) I times tau + lambda: 1 in all directions beside U.
      factors_{((kernel.remainder + lambda) / (kernel.values.array() + kernel.remainder + lambda)).sqrt() -
               1},
      inverse_factors_{(factors_.array() + 1).inverse() - 1} {}

Matrix<double> LowRankPreconditioner::scaled(const Matrix<double>& x, const Vector<double>& factors) const {
  if (factors.size() == 0) return x;
  const Matrix<double> inner =
      factors.asDiagonal() * multiply(kernel_->vectors, Transpose::yes, x, Transpose::no);
  return x + multiply(kernel_->vectors, Transpose::no, inner, Transpose::no);
}

}  // namespace widelimit::gp
