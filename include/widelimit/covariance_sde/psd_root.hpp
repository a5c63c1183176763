#pragma once

#include "widelimit/matrix.hpp"

namespace widelimit::covariance_sde {

/// The symmetric positive semidefinite root R of S = R R, by eigendecomposition.
///
/// Expects   S square, symmetric, finite and positive semidefinite up to rounding.
/// Edges     eigenvalues between -1e-10 of the largest and 0, left by rounding, count as 0.
/// Errors    ArgumentError if S is not square, symmetric or finite, or has an eigenvalue below that.
/// Cost      O(D^3) for D rows.
[[nodiscard]] Matrix<double> symmetric_root(const Matrix<double>& s);

/// A lower triangular L with L L^T = V, V positive semidefinite and possibly singular. A pivot at or below
/// 1e-15 of its diagonal entry is taken as 0, and so is its column.
///
/// Errors    ArgumentError as for symmetric_root; NumericalError if a pivot is below -1e-12 of its diagonal
///           entry.
/// Cost      O(m^3).
[[nodiscard]] Matrix<double> lower_root(const Matrix<double>& v);

}  // namespace widelimit::covariance_sde
