#pragma once

#include <span>
#include <vector>

#include "widelimit/index.hpp"
#include "widelimit/numerics/statistics.hpp"

namespace widelimit::propagation {

/// What one head of a model attends to: means over the rows of a sequence, then over sequences, with standard errors
/// (NaN for a single sequence).
struct MeasuredHead {
  numerics::Estimate
      entropy;  ///< Of a row's weights, in nats: ln of the number of keys if all have one weight.
  numerics::Estimate uniform;  ///< ln of the number of keys that are kept: the largest entropy.
  numerics::Estimate
      first_weight;  ///< Weight on the first token that is kept, where many models have a sink.
  numerics::Estimate largest_weight;  ///< Of a row.
  /// Of a row, on the keys that are kept, before it was brought to 1: less where what is left out is no padding, such
  /// as a sink.
  numerics::Estimate kept_weight;
  Index rows_left_out =
      0;  ///< Rows of all sequences without weight on a kept key: only kept_weight counts them.
};

/// What tokens are that are left out: some of all, such as sinks, or padding, which has no weight.
enum class LeftOutTokens { some, padding };

/// The heads of attention weights [sequences, heads, tokens, tokens], row-major, after the softmax. `kept` [sequences,
/// tokens]: rows and columns that are left out may hold anything, and each row is brought to 1 over the keys that are
/// kept; empty: all are kept. Means are NaN where no row has weight on a kept key.
/// Errors  ArgumentError for weights that do not fill whole heads, a sequence that keeps no token, and rows whose
///         weights are negative or not finite, or whose sum is off 1 by more than 2 %, both over the keys that are kept
///         and, unless those left out are padding, together with the weights on the others.
[[nodiscard]] std::vector<MeasuredHead> measured_attention(std::span<const double> weights, Index sequences,
                                                           Index heads, Index tokens,
                                                           const std::vector<bool>& kept = {},
                                                           LeftOutTokens left_out = LeftOutTokens::some);

}  // namespace widelimit::propagation
