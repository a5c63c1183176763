#include "layers/covariance_roots.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

namespace widelimit::layers {

CovarianceRoot covariance_root(const Matrix<double>& matrix) {
  const Eigen::SelfAdjointEigenSolver<Matrix<double>> solver(matrix);
  const Vector<double>& values = solver.eigenvalues();
  // Directions below rounding carry no variance that could be told from 0.
  const double threshold =
      1e-13 * std::max(values.cwiseAbs().maxCoeff(), 1e-300) * static_cast<double>(values.size());
  Vector<double> roots(values.size()), inverses(values.size());
  for (Index i = 0; i < values.size(); ++i) {
    roots[i] = values[i] > threshold ? std::sqrt(values[i]) : 0;
    inverses[i] = values[i] > threshold ? 1 / roots[i] : 0;
  }
  return {solver.eigenvectors() * roots.asDiagonal(),
          inverses.asDiagonal() * solver.eigenvectors().transpose()};
}

Matrix<double> joint_right_root(const Matrix<double>& left_inverse, const Matrix<double>& cross,
                                const Matrix<double>& right) {
  const Index d = cross.rows(), e = cross.cols();
  Matrix<double> root(e, d + e);
  root.leftCols(d) = cross.transpose() * left_inverse.transpose();
  const Matrix<double> rest = right - root.leftCols(d) * root.leftCols(d).transpose();
  root.rightCols(e) = covariance_root((rest + rest.transpose()) / 2).root;
  return root;
}

}  // namespace widelimit::layers
