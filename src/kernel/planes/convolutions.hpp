#pragma once

#include "kernel/planes/placed_instruction.hpp"
#include "kernel/planes/tile_run.hpp"

/// Convolutions and dense layers on a stack of planes.
namespace widelimit {

/// Planes of `count` pairs, one after the other, before a convolution and after it.
struct ConvolvedPlanes {
  const Affine& affine;
  const PlacedPlane& from;
  const PlacedPlane& to;
  Index count;

  /// Numbers of all planes after it, padded.
  [[nodiscard]] std::size_t target_size() const {
    return static_cast<std::size_t>(padded(count * to.layout.length));
  }
};

/// Any convolution or dense layer but a circular one, between planes that lie alone. Guards of the source are zero.
/// `windows`: those of a strided convolution; `scratch`: two rows with a zero margin before them.
template <typename Scalar>
void convolve(const ConvolvedPlanes& planes, const numerics::PlaneWindows& windows,
              const Plane<Scalar>& source, const Plane<Scalar>& target,
              const std::array<Scalar*, 2>& scratch);

/// The same from the plane of another instruction, whose guards are cleared where its schedule leaves them open.
template <typename Scalar>
void convolve(const PlacedInstruction<Scalar>& from, const PlacedInstruction<Scalar>& to, Index stacked,
              const std::array<Scalar*, 2>& scratch);

/// Without weight sharing: from a kept input to offset 0, every other offset is zero.
template <typename Scalar>
void convolve_locally(const TileRun<Scalar>& run, NodeId input, const PlacedInstruction<Scalar>& to,
                      Index pair, const Plane<Scalar>& target);

/// Around the axes: entry by entry from a kept input, because wrap-around mixes planes that lie a whole axis
/// apart.
template <typename Scalar>
void convolve_around(const TileRun<Scalar>& run, NodeId input, const PlacedInstruction<Scalar>& to,
                     Index pair, const Plane<Scalar>& target);

}  // namespace widelimit
