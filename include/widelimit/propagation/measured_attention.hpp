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
};

/// The heads of attention weights [sequences, heads, tokens, tokens], row-major, after the softmax. `kept` [sequences,
/// tokens]: rows and columns that are left out may hold anything, but keys that are kept must have all of the weight;
/// empty: all are kept.
/// Errors  ArgumentError for weights that do not fill whole heads, a sequence that keeps no token, and rows whose
///         weights are negative, not finite, or off 1 in their sum by more than 2 %.
[[nodiscard]] std::vector<MeasuredHead> measured_attention(std::span<const double> weights, Index sequences,
                                                           Index heads, Index tokens,
                                                           const std::vector<bool>& kept = {});

}  // namespace widelimit::propagation
