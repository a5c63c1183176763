#pragma once

#include "widelimit/kernel/gram.hpp"

namespace widelimit {

/// Kernels between all positions of two inputs after a network, [d, d']; d and d' are 1 if no positions are left.
template <typename Scalar>
struct PositionCovariances {
  Matrix<Scalar> nngp;
  Matrix<Scalar> ntk;
  /// Standard errors, for networks with sampled layers, else empty; like those of GramResult.
  Matrix<Scalar> nngp_error = {};
  Matrix<Scalar> ntk_error = {};
};

/// The covariances between positions of input i of x1 and input j of x2, for a network that need not end in a readout.
/// With sampled layers they are means over replicates, as in gram(). Of the options, only threads and the stop token
/// matter; `kernels` does not: both are computed.
///
/// Errors  those of gram(); ArgumentError for an input that does not exist.
/// Cost    one pair of gram() with all its positions, and a plan for it.
template <typename Scalar>
[[nodiscard]] PositionCovariances<Scalar> position_covariances(const Network& network,
                                                               const Inputs<Scalar>& x1, Index i,
                                                               const Inputs<Scalar>& x2, Index j,
                                                               const GramOptions& options = {});

/// The same for inputs i and j of one batch; i = j is an input with itself.
template <typename Scalar>
[[nodiscard]] PositionCovariances<Scalar> position_covariances(const Network& network,
                                                               const Inputs<Scalar>& x, Index i, Index j,
                                                               const GramOptions& options = {});

}  // namespace widelimit
