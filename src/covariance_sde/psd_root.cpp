#include "widelimit/covariance_sde/psd_root.hpp"

#include <Eigen/Eigenvalues>

#include "covariance_sde/arguments.hpp"
#include "covariance_sde/guarded_cholesky.hpp"

namespace widelimit::covariance_sde {

Matrix<double> symmetric_root(const Matrix<double>& s) {
  require_covariance("symmetric_root", s);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(s);
  const Eigen::VectorXd roots = solver.eigenvalues().cwiseMax(0).cwiseSqrt();
  return solver.eigenvectors() * roots.asDiagonal() * solver.eigenvectors().transpose();
}

Matrix<double> lower_root(const Matrix<double>& v) {
  require_covariance("lower_root", v);
  Matrix<double> l(v.rows(), v.cols());
  if (!guarded_cholesky(v, l))
    throw NumericalError(
        "lower_root: a pivot is negative beyond rounding; use symmetric_root for this matrix");
  return l;
}

}  // namespace widelimit::covariance_sde
