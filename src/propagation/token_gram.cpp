#include "propagation/token_gram.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <cmath>

#include "numerics/arguments.hpp"
#include "widelimit/error.hpp"

namespace widelimit::propagation {
namespace {

using Eigen::Index;

constexpr double cone_tolerance = 1e-10;

}  // namespace

void require_gram(const char* where, const Matrix<double>& gram) {
  if (gram.rows() < 1 || gram.rows() != gram.cols())
    throw ArgumentError(fmt::format("{}: gram must be square, got {} x {}", where, gram.rows(), gram.cols()));
  if (!gram.allFinite()) throw ArgumentError(fmt::format("{}: gram must be finite", where));
  for (Index i = 0; i < gram.rows(); ++i)
    if (!(gram(i, i) > 0))
      throw ArgumentError(
          fmt::format("{}: gram must have a positive diagonal, got {} at token {}", where, gram(i, i), i));
  numerics::require_symmetric(where, "gram", gram);
  const Vector<double> norms = gram.diagonal().cwiseSqrt();
  for (Index i = 0; i < gram.rows(); ++i)
    for (Index j = 0; j < i; ++j)
      if (!(std::abs(gram(i, j)) <= (1 + cone_tolerance) * norms(i) * norms(j)))
        throw ArgumentError(fmt::format("{}: the cosine of tokens {} and {} must lie in [-1, 1], got {}",
                                        where, j, i, gram(i, j) / (norms(i) * norms(j))));
}

void require_semidefinite(const char* where, const Matrix<double>& gram) {
  const double pivot = Eigen::LDLT<Eigen::MatrixXd>(gram).vectorD().minCoeff();
  if (!(pivot >= -cone_tolerance * gram.diagonal().maxCoeff()))
    throw ArgumentError(
        fmt::format("{}: gram must be positive semidefinite, its Cholesky factorization has a pivot of {}",
                    where, pivot));
}

}  // namespace widelimit::propagation
