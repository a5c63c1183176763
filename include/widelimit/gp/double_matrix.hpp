#pragma once

#include <algorithm>
#include <limits>
#include <utility>

#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// An argument that a function keeps or overwrites, in double: a Matrix<double> is moved in (or copied, from
/// an lvalue), any other matrix or expression of real numbers is converted. Conversions are implicit on
/// purpose: write `Regression::fit(std::move(gram), ...)` for gram of float as of double. What the numbers
/// were rounded to before is remembered.
class DoubleMatrix {
 public:
  DoubleMatrix(Matrix<double> matrix) : matrix_(std::move(matrix)) {}

  /// Numbers that were rounded before, to a type of machine epsilon `epsilon`, for example read from files of float.
  DoubleMatrix(Matrix<double> matrix, double epsilon)
      : matrix_(std::move(matrix)), epsilon_(std::max(std::numeric_limits<double>::epsilon(), epsilon)) {}

  template <typename Derived>
  DoubleMatrix(const Eigen::MatrixBase<Derived>& matrix)
      : matrix_(matrix.template cast<double>()),
        epsilon_(std::max(std::numeric_limits<double>::epsilon(),
                          static_cast<double>(std::numeric_limits<typename Derived::Scalar>::epsilon()))) {}

  /// Machine epsilon of the type that the numbers come from, at least that of double.
  [[nodiscard]] double epsilon() const noexcept { return epsilon_; }

  [[nodiscard]] const Matrix<double>& matrix() const noexcept { return matrix_; }

  /// The matrix itself, moved out.
  [[nodiscard]] Matrix<double> take() && { return std::move(matrix_); }

 private:
  Matrix<double> matrix_;
  double epsilon_ = std::numeric_limits<double>::epsilon();
};

}  // namespace widelimit::gp
