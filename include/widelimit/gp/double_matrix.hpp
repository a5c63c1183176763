#pragma once

#include <utility>

#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// An argument that a function keeps or overwrites, in double: a Matrix<double> is moved in (or copied, from
/// an lvalue), any other matrix or expression of real numbers is converted. Conversions are implicit on
/// purpose: write `Regression::fit(std::move(gram), ...)` for gram of float as of double.
class DoubleMatrix {
 public:
  DoubleMatrix(Matrix<double> matrix) : matrix_(std::move(matrix)) {}

  template <typename Derived>
  DoubleMatrix(const Eigen::MatrixBase<Derived>& matrix) : matrix_(matrix.template cast<double>()) {}

  [[nodiscard]] Matrix<double> take() && { return std::move(matrix_); }

 private:
  Matrix<double> matrix_;
};

}  // namespace widelimit::gp
