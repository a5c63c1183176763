#pragma once

#include <memory>

#include "widelimit/layers/attention.hpp"
#include "widelimit/network/pair_stage.hpp"

namespace widelimit::layers {

/// Attention whose weights are deterministic: A(x) = zeta(qk K~(x, x)), S = ov A(x) V A(x')^T (theory note, 3.2).
std::shared_ptr<const PairStage> make_inverse_width_attention(const AttentionOptions& options);

}  // namespace widelimit::layers
