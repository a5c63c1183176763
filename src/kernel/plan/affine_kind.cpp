#include "kernel/plan/affine_kind.hpp"

namespace widelimit {

AffineKind affine_kind(const AffineNode& node) {
  const Window3 window(node.window);
  // A selection of positions (with_selections()) has no weights and steps through positions.
  if (node.weights == AffineNode::Weights::none) return AffineKind::strided;
  // This comes before the padding is looked at: a window of one position sees no border, whatever its padding.
  if (window.is_single_position()) return AffineKind::single_position;
  if (window.padding == Padding::circular)
    // A strided window of one position never reaches the border either.
    return window.size == Index3{1, 1, 1} ? AffineKind::strided : AffineKind::circular;
  const bool shifts = window.stride == Index3{1, 1, 1} && window.padding == Padding::same;
  return shifts ? AffineKind::shifted : AffineKind::strided;
}

}  // namespace widelimit
