#include "gp/inference/function_samples.hpp"

#include <fmt/format.h>

#include <utility>

#include "gp/solvers/linear_algebra.hpp"
#include "numerics/blas_threads.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::gp {

Matrix<double> normal_matrix(Index rows, Index columns, std::uint64_t seed, Index k) {
  // Each sample has a stream of its own, so that more samples begin with the same ones.
  numerics::RandomStream stream(seed, static_cast<std::uint64_t>(k));
  Matrix<double> normals(rows, columns);
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j) normals(i, j) = stream.normal();
  return normals;
}

Matrix<double> root_of(Matrix<double> covariance, const Matrix<double>& prior, const char* where) {
  if (covariance.size() == 0) return covariance;
  const double largest_prior_variance = prior.diagonal().maxCoeff();
  const numerics::BlasThreads guard(numerics::resolve_threads(0, where));
  const SymmetricEigen eigen = symmetric_eigen(std::move(covariance), where);
  constexpr double largest_rounding = 1e-3;  // the tolerance that variances have
  if (eigen.values(0) < -largest_rounding * largest_prior_variance)
    throw NumericalError(fmt::format(
        "{}: the covariance has the eigenvalue {:.6g}, with prior variances of up to {:.6g}; fit in "
        "double or regularise more",
        where, eigen.values(0), largest_prior_variance));
  return eigen.vectors.transpose() * eigen.values.cwiseMax(0).cwiseSqrt().asDiagonal();
}

}  // namespace widelimit::gp
