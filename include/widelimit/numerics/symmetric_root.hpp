#pragma once

#include "widelimit/matrix.hpp"

namespace widelimit::numerics {

/// The symmetric positive semidefinite root R of S = R R, by eigendecomposition; S [n, n] is
/// symmetric but for `rounding` of its largest entry.
///
/// Edges     eigenvalues between -`rounding` times the largest and 0 count as 0.
/// Errors    ArgumentError if S is not square, not symmetric or not finite; NumericalError if an eigenvalue lies below
///           that.
/// Cost      O(n^3).
[[nodiscard]] Matrix<double> symmetric_root(const Matrix<double>& matrix, double rounding = 1e-10);

}  // namespace widelimit::numerics
