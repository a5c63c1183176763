#pragma once

namespace widelimit {

/// Which positions (tokens) a position attends to.
enum class AttentionMask {
  full,   ///< All of them: no mask.
  causal  ///< Itself and the ones before, in row-major order.
};

}  // namespace widelimit
