#include "kernel/backends/cpu/planes/affine.hpp"

namespace widelimit {

Affine::Affine(const AffineNode& node, const Index3& left, const Index3& right)
    : window{node.window},
      left_front{window.front(left)},
      right_front{window.front(right)},
      // The divisor is the whole window, whatever part of it lies in the padding (docs/theory/kernel-recursion.md,
      // section 2.1).
      scale{node.weight_variance / static_cast<double>(product(window.size))},
      bias{node.bias_variance},
      kind{affine_kind(node)},
      trained{node.weights == AffineNode::Weights::trained} {}

Index3 Affine::offset_of_diagonal() const {
  return {left_front[0] - right_front[0], left_front[1] - right_front[1], left_front[2] - right_front[2]};
}

std::optional<Affine> affine_of(const Node& node, const PairGeometry& geometry) {
  const AffineNode* affine = affine_part(node.operation);
  if (affine == nullptr) return {};
  const NodeId input = node.inputs[0];
  return Affine(*affine, geometry.left_sizes[input], geometry.right_sizes[input]);
}

numerics::PlaneWindows strided_windows(const Affine& affine, const PlacedPlane& from, const PlacedPlane& to) {
  const PlaneLayout &source = from.layout, &target = to.layout;
  numerics::PlaneWindows windows{.first = {},
                                 .stride = affine.window.stride,
                                 .taps = affine.window.size,
                                 .source_extent = source.extent,
                                 .target_extent = {target.extent[0] + target.guard[0],
                                                   target.extent[1] + target.guard[1], target.stride[1]},
                                 .source_step = {source.stride[0], source.stride[1]},
                                 .target_step = {target.stride[0], target.stride[1]},
                                 .source_guard = source.guard[2] > 0 ? source.stride[1] : 0,
                                 .scale = affine.scale,
                                 .bias = affine.bias};
  for (std::size_t k = 0; k < 3; ++k)
    // The first entry that the window of the target's first entry reads, relative to the source's first entry. It is
    // negative if the window begins in the padding.
    windows.first[k] =
        windows.stride[k] * to.axis[k].origin[0] - affine.left_front[k] - from.axis[k].origin[0];
  return windows;
}

}  // namespace widelimit
