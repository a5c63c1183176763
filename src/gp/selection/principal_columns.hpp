#pragma once

#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// Standardised columns of inputs, rotated to their principal directions. Squares of weights, and so penalties, stay
/// what they are; columns of the training inputs become orthogonal and at most as many as inputs.
struct PrincipalColumns {
  /// Columns that are equal for all training inputs are left out.
  PrincipalColumns(const Matrix<double>& train_inputs, const Matrix<double>& test_inputs);

  Matrix<double> train;   ///< [n, rank], of mean 0
  Matrix<double> test;    ///< [n_test, rank]
  Vector<double> powers;  ///< [rank], squared norms of the columns of `train`
};

}  // namespace widelimit::gp
