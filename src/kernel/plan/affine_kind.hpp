#pragma once

#include "kernel/plan/geometry.hpp"
#include "network/graph.hpp"

namespace widelimit {

/// How a convolution or dense layer is evaluated on planes: entry by entry (single_position), as a sum of shifted
/// copies (shifted), as windows of any place and stride (strided), or entry by entry from a kept node, around the
/// border (circular). The schedule, the engine and the derivatives all go by this.
enum class AffineKind { single_position, shifted, strided, circular };

[[nodiscard]] AffineKind affine_kind(const AffineNode& node);

}  // namespace widelimit
