#pragma once

#include "widelimit/matrix.hpp"

namespace widelimit::covariance_sde {

/// A lower triangular L with L L^T = V, V positive semidefinite and possibly singular. A pivot at or below
/// 1e-15 of its diagonal entry is taken as 0, and so is its column.
///
/// Errors    ArgumentError if V is not square, symmetric or finite, or has an eigenvalue below -1e-10 of the
///           largest; NumericalError if a pivot is below -1e-12 of its diagonal entry.
/// Cost      O(m^3).
[[nodiscard]] Matrix<double> lower_root(const Matrix<double>& v);

}  // namespace widelimit::covariance_sde
