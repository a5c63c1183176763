#pragma once

#include <cstddef>

namespace widelimit::numerics {

/// What an elementwise nonlinearity phi does to one covariance entry of a pair of inputs.
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

}  // namespace widelimit::numerics
