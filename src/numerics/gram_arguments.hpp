#pragma once

#include <algorithm>

#include "numerics/arguments.hpp"
#include "numerics/eigen_solver.hpp"

namespace widelimit::numerics {

/// Throws ArgumentError("WHERE: WHAT must be ...") unless a square matrix is symmetric (1e-12) and has no eigenvalue
/// below -1e-10 of its largest, which is what rounding makes of a singular one.
inline void require_semidefinite(std::string_view where, std::string_view what,
                                 const Matrix<double>& matrix) {
  require_symmetric(where, what, matrix);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(matrix, Eigen::EigenvaluesOnly);
  const double smallest = solver.eigenvalues().minCoeff(), largest = solver.eigenvalues().maxCoeff();
  if (smallest < -1e-10 * std::max(largest, 0.0) || largest < 0)
    throw ArgumentError(
        fmt::format("{}: {} must be positive semidefinite, got eigenvalues from {:.6g} to {:.6g}", where,
                    what, smallest, largest));
}

}  // namespace widelimit::numerics
