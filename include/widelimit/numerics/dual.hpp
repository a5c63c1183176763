#pragma once

#include <cstddef>

namespace widelimit::numerics {

/// The effect of an elementwise nonlinearity phi on one covariance entry of a pair of inputs.
template <typename Scalar>
struct Dual {
  Scalar value;       ///< E[phi(u) phi(v)]: the next NNGP entry.
  Scalar derivative;  ///< E[phi'(u) phi'(v)]: the factor on the incoming NTK entry.
};

/// A contiguous run of covariance entries, transformed in place. Entry i belongs to a position of the left
/// input and one of the right input; `left[k][i]` and `right[k][i]` are the k-th auxiliary numbers that the
/// activation prepared from the variances of those positions.
template <typename Scalar>
struct DualRow {
  Scalar* nngp;                ///< [size] covariances in, E[phi phi] out.
  Scalar* ntk;                 ///< [size] multiplied by E[phi' phi']; nullptr when only the NNGP is wanted.
  const Scalar* const* left;   ///< [auxiliary_count][size]
  const Scalar* const* right;  ///< [auxiliary_count][size]
  std::size_t size;
};

/// A Dual and its slopes in p, q and c, the two variances and the covariance.
struct DualSlopes {
  Dual<double> dual;
  Dual<double> left;       ///< Partial derivatives in p of value and derivative.
  Dual<double> right;      ///< Partial derivatives in q.
  double derivative_in_c;  ///< Slope of the derivative: E[phi'' phi''] where phi is smooth.
  double value_in_c;  ///< Slope of the value: dual.derivative (Price's theorem), and more where phi jumps.
};

/// A Dual of one variable with itself, p = q = c, and its total derivatives in p.
struct SelfSlopes {
  Dual<double> dual;
  Dual<double> slope;
};

/// A run of covariance entries in the backward pass through a stage. L is a number that depends on them; an adjoint is
/// the derivative of L by a quantity.
template <typename Scalar>
struct AdjointRow {
  const Scalar* nngp;            ///< [size] covariances before the stage.
  const Scalar* ntk;             ///< [size], before the stage; nullptr when only the NNGP is wanted.
  const Scalar* left_variance;   ///< [size] variances p of the left positions, before the stage.
  const Scalar* right_variance;  ///< [size], q.
  const Scalar* const* left;     ///< [auxiliary_count][size], as in DualRow.
  const Scalar* const* right;    ///< [auxiliary_count][size]
  Scalar* nngp_adjoint;          ///< [size] input: after the stage; output: before it.
  Scalar* ntk_adjoint;           ///< [size] the same; nullptr when only the NNGP is wanted.
  Scalar* left_adjoint;          ///< [size] output: the adjoints of p.
  Scalar* right_adjoint;         ///< [size] output: the adjoints of q.
  std::size_t size;
};

}  // namespace widelimit::numerics
