#pragma once

#include "network/mask_rule.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit::layers {

/// Whether queries and keys share their weights, with the default of the scaling filled in.
[[nodiscard]] QueryKeyWeights query_key_weights(const AttentionOptions& options);

/// Throws ArgumentError if options are out of range or do not fit each other.
void check_attention(const AttentionOptions& options);

/// Throws ArgumentError if attention cannot act on inputs of this shape.
void check_attention_fits(const AttentionOptions& options, const Shape& input);

/// Throws ArgumentError if the mask of an input leaves nothing to see for a position that counts, and the weights
/// need something (softmax).
void check_attention_sees(const AttentionOptions& options, const PositionMask& mask);

}  // namespace widelimit::layers
