#pragma once

#include <optional>

#include "kernel/backends/cpu/planes/placed_plane.hpp"
#include "kernel/plan/pair_geometry.hpp"
#include "kernel/plan/primitives.hpp"
#include "numerics/rows/window_rows.hpp"

namespace widelimit {

/// A convolution (also a local one) or dense layer between inputs of certain sizes, with everything that does not
/// depend on the offset: K' = scale * (sum over the window) + bias.
struct Affine {
  Window3 window;
  Index3 left_front;
  Index3 right_front;
  double scale;
  double bias;
  AffineKind kind;
  bool trained;  ///< Whether it has weights, whose gradients enter the NTK.

  /// `left` and `right` are the sizes before the layer.
  Affine(const AffineNode& node, const Index3& left, const Index3& right);

  /// The offset before the layer that becomes offset 0.
  [[nodiscard]] Index3 offset_of_diagonal() const;
};

/// The convolution (also a local one) or dense layer of a node between two inputs; nothing for other nodes.
[[nodiscard]] std::optional<Affine> affine_of(const Node& node, const PairGeometry& geometry);

/// The windows of any convolution except a circular one, from one placed plane to another. They are evaluated for the
/// gaps of the target as well, which then contain finite numbers.
[[nodiscard]] numerics::PlaneWindows strided_windows(const Affine& affine, const PlacedPlane& from,
                                                     const PlacedPlane& to);

}  // namespace widelimit
