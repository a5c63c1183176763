#pragma once

#include "widelimit/matrix.hpp"
#include "widelimit/network/shape.hpp"

/// Roots of the covariances that logits are sampled with.
namespace widelimit::layers {

/// A square root of a positive semidefinite matrix, root root^T = matrix, and the root's pseudo-inverse.
struct CovarianceRoot {
  Matrix<double> root;
  Matrix<double> inverse;  ///< inverse root is the projection on the range of root^T
};

CovarianceRoot covariance_root(const Matrix<double>& matrix);

/// The rows of the second of two inputs in a block triangular root L of their joint covariance, [e, d + e]:
///
///     L21 L11^T = cross^T,   L21 L21^T + L22 L22^T = right.
///
/// L11 is the root of the first input's covariance, of which `left_inverse` is the pseudo-inverse. `cross` [d, e] is
/// the covariance of the first input with the second, `right` [e, e] that of the second.
Matrix<double> joint_right_root(const Matrix<double>& left_inverse, const Matrix<double>& cross,
                                const Matrix<double>& right);

}  // namespace widelimit::layers
