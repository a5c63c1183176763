#pragma once

#include "numerics/gemm.hpp"
#include "widelimit/matrix.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit::finite {

using numerics::Transpose;

template <typename Scalar>
using ConstMap = Eigen::Map<const Matrix<Scalar>>;

/// A whole matrix as the operand of a product.
template <typename Scalar>
ConstMap<Scalar> map_of(const Matrix<Scalar>& matrix) {
  return ConstMap<Scalar>(matrix.data(), matrix.rows(), matrix.cols());
}

/// target = scale * op(A) op(B) + keep * target. BLAS uses as many threads as it is set to.
template <typename Scalar>
void multiply(Transpose transpose_a, Transpose transpose_b, Scalar scale, const ConstMap<Scalar>& a,
              const ConstMap<Scalar>& b, Scalar keep, Matrix<Scalar>& target) {
  const bool plain = transpose_a == Transpose::no;
  numerics::gemm(transpose_a, transpose_b, target.rows(), target.cols(), plain ? a.cols() : a.rows(), scale,
                 {a.data(), a.cols()}, {b.data(), b.cols()}, keep, target.data(), target.cols());
}

/// scale A B
template <typename Scalar>
Matrix<Scalar> product(Scalar scale, const Matrix<Scalar>& a, const ConstMap<Scalar>& b) {
  Matrix<Scalar> result(a.rows(), b.cols());
  multiply(Transpose::no, Transpose::no, scale, map_of(a), b, Scalar{0}, result);
  return result;
}

/// scale A B^T
template <typename Scalar>
Matrix<Scalar> product_transposed(Scalar scale, const Matrix<Scalar>& a, const ConstMap<Scalar>& b) {
  Matrix<Scalar> result(a.rows(), b.rows());
  multiply(Transpose::no, Transpose::yes, scale, map_of(a), b, Scalar{0}, result);
  return result;
}

}  // namespace widelimit::finite
