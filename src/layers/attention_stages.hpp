#pragma once

#include <cstdint>
#include <memory>

#include "widelimit/layers/attention.hpp"
#include "widelimit/network/pair_stage.hpp"

/// The stages that attention lowers to (docs/theory/attention.md, sections 2 and 3).
namespace widelimit::layers {

/// 1/width: the weights are deterministic, A(x) = zeta(qk K~(x, x)), S = ov A(x) V A(x')^T.
std::shared_ptr<const PairStage> make_inverse_width_attention(const AttentionOptions& options);

/// 1/sqrt(width) with weights that are the logits themselves: O(d^2) for each pair.
std::shared_ptr<const PairStage> make_identity_attention(const AttentionOptions& options);

/// 1/sqrt(width) with any elementwise weights, exact through their dual activation: O(d^4) for each pair, or O(d^3)
/// for the diagonal.
std::shared_ptr<const PairStage> make_elementwise_attention(const AttentionOptions& options);

/// 1/sqrt(width) with positively homogeneous weights and no mask: O(nodes d^2) for each pair.
std::shared_ptr<const PairStage> make_homogeneous_attention(const AttentionOptions& options);

/// Which Gaussian draws a sampled stage uses: `samples` of them from streams of its own.
struct AttentionDraws {
  std::int64_t samples;
  std::uint64_t seed;
  std::uint64_t stream;
};

/// 1/sqrt(width) with softmax, by sampling the logits of the pair.
std::shared_ptr<const PairStage> make_sampled_softmax_attention(const AttentionOptions& options,
                                                                const AttentionDraws& draws);

}  // namespace widelimit::layers
