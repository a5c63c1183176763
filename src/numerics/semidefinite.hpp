#pragma once

#include <algorithm>
#include <cmath>

#include "numerics/eigen_solver.hpp"
#include "widelimit/error.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::numerics {

/// Eigenvectors of a symmetric matrix, and the roots of its eigenvalues where those are positive, else 0.
template <typename Square>
struct SemidefiniteRoots {
  Square vectors;
  Vector<double> eigenvalues;
  Vector<double> roots;

  /// A root of the matrix: factor() factor()^T = matrix.
  [[nodiscard]] Square factor() const { return vectors * roots.asDiagonal(); }
  [[nodiscard]] Square symmetric() const { return vectors * roots.asDiagonal() * vectors.transpose(); }
  /// The pseudoinverse of factor().
  [[nodiscard]] Square pseudo_inverse() const {
    const Vector<double> inverses = roots.unaryExpr([](double root) { return root > 0 ? 1 / root : 0; });
    return inverses.asDiagonal() * vectors.transpose();
  }
};

/// Decomposes the matrix whose lower triangle is that of `matrix`. Eigenvalues up to `negligible` times the largest, in
/// absolute value, count as 0. NumericalError where the iteration does not converge.
template <typename Square>
SemidefiniteRoots<Square> semidefinite_roots(const Square& matrix, double negligible = 0) {
  const Eigen::SelfAdjointEigenSolver<Square> solver(matrix);
  if (solver.info() != Eigen::Success)
    throw NumericalError("semidefinite root: the eigenvalue iteration did not converge");
  SemidefiniteRoots<Square> result{solver.eigenvectors(), solver.eigenvalues(), solver.eigenvalues()};
  const double threshold = negligible * result.eigenvalues.cwiseAbs().maxCoeff();
  for (double& root : result.roots) root = root > threshold ? std::sqrt(root) : 0;
  return result;
}

}  // namespace widelimit::numerics
