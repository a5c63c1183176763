#include "widelimit/numerics/symmetric_root.hpp"

#include <fmt/format.h>

#include "numerics/arguments.hpp"
#include "numerics/semidefinite.hpp"

namespace widelimit::numerics {

Matrix<double> symmetric_root(const Matrix<double>& matrix, double rounding) {
  if (matrix.rows() != matrix.cols())
    throw ArgumentError(
        fmt::format("symmetric_root: the matrix must be square, got {} x {}", matrix.rows(), matrix.cols()));
  if (!matrix.allFinite()) throw ArgumentError("symmetric_root: the matrix must be finite");
  require_symmetric("symmetric_root", "the matrix", matrix, rounding);
  const auto roots = semidefinite_roots(Eigen::MatrixXd((matrix + matrix.transpose()) / 2));
  const double least = roots.eigenvalues.minCoeff(), largest = std::max(roots.eigenvalues.maxCoeff(), 0.0);
  if (least < -rounding * std::max(largest, rounding))
    throw NumericalError(fmt::format(
        "symmetric_root: the matrix is not positive semidefinite, its eigenvalues go from {} to {}", least,
        largest));
  return roots.symmetric();
}

}  // namespace widelimit::numerics
