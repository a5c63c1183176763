#include "layers/covariance_roots.hpp"

#include "numerics/semidefinite.hpp"

namespace widelimit::layers {

CovarianceRoot covariance_root(const Matrix<double>& matrix) {
  // Directions whose variance is below the rounding of the matrix cannot be told from ones without variance, and are
  // left out.
  const auto roots = numerics::semidefinite_roots(matrix, 1e-13 * static_cast<double>(matrix.rows()));
  return {roots.factor(), roots.pseudo_inverse()};
}

Matrix<double> joint_right_root(const Matrix<double>& left_inverse, const Matrix<double>& cross,
                                const Matrix<double>& right) {
  const Index d = cross.rows(), e = cross.cols();
  Matrix<double> root(e, d + e);
  root.leftCols(d) = cross.transpose() * left_inverse.transpose();
  const Matrix<double> rest = right - root.leftCols(d) * root.leftCols(d).transpose();
  // The rest (a Schur complement) is symmetric up to rounding only.
  root.rightCols(e) = covariance_root((rest + rest.transpose()) / 2).root;
  return root;
}

}  // namespace widelimit::layers
