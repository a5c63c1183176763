#pragma once

#include <Eigen/Core>

#include "widelimit/eigen_alignment.hpp"

namespace widelimit {

/// Dense row-major matrix: Gram matrices, predictions, targets. Element type float or double.
template <typename Scalar>
using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Dense column vector.
template <typename Scalar>
using Vector = Eigen::Matrix<Scalar, Eigen::Dynamic, 1>;

}  // namespace widelimit
