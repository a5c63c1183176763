#pragma once

#include "widelimit/layers/attention.hpp"
#include "widelimit/network/layer.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit::models {

/// Options of cross_attention().
struct CrossAttentionOptions {
  Index sources;  ///< Positions of the source, the first ones of every input; at least 1.
  Index longest;  ///< Positions of the longest input, more than `sources`.
  /// Any option except masks, which are made here: causal, windows and your own matrices are refused.
  layers::AttentionOptions attention = {};
};

/// Attention from one sequence to another, as decoders attend to encoders. An input consists of both sequences, one
/// after the other: `sources` positions of the source, then those of the target, as many as each input has. The targets
/// attend only to the sources, and remain: [sources + targets] positions before it, [targets] after it. It is masked
/// attention and a slice, in all variants of attention(); positions are numbered from the first source on.
///
/// Errors  ArgumentError for sizes out of range, masks, and options that attention() rejects; NetworkError for inputs
///         of no more than `sources` or more than `longest` positions.
///
/// Source  docs/theory/attention.md, section 4.1.
[[nodiscard]] Layers cross_attention(const CrossAttentionOptions& options);

/// The targets alone, unchanged: the skip connection for cross_attention().
[[nodiscard]] Layers targets_of(const CrossAttentionOptions& options);

}  // namespace widelimit::models
