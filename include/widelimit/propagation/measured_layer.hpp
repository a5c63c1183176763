#pragma once

#include <span>

#include "widelimit/matrix.hpp"
#include "widelimit/numerics/statistics.hpp"

namespace widelimit::propagation {

using Eigen::Index;

/// Norms and angles of the tokens in one layer of any model: means over sequences, with their standard
/// errors (NaN for a single sequence).
struct MeasuredLayer {
  numerics::Estimate norm;    ///< Mean squared norm of a sequence's tokens over the width, q.
  numerics::Estimate cosine;  ///< Of the mean product of two of its tokens.
  double gap = 0;             ///< 1 - cosine, without cancellation.
  Matrix<double> gram;        ///< [tokens, tokens]: X X^T / width.
};

/// The tokens of activations [sequences, tokens, width], row-major.
/// Errors  ArgumentError for no activations or numbers that do not fill whole sequences, fewer than two tokens, numbers
///         that are not finite, and a sequence that is 0 throughout, naming it.
[[nodiscard]] MeasuredLayer measured_layer(std::span<const double> activations, Index sequences,
                                           Index tokens);

}  // namespace widelimit::propagation
