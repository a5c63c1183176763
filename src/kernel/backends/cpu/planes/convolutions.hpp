#pragma once

#include "kernel/backends/cpu/planes/placed_instruction.hpp"
#include "kernel/backends/cpu/planes/tile_work.hpp"

/// Convolutions and dense layers on a stack of planes.
namespace widelimit {

/// The planes of `count` pairs, one after the other, before a convolution and after it.
struct ConvolvedPlanes {
  const Affine& affine;
  const PlacedPlane& from;
  const PlacedPlane& to;
  Index count;

  /// The numbers of all planes after the convolution, padded.
  [[nodiscard]] std::size_t target_size() const {
    return static_cast<std::size_t>(padded(count * to.layout.length));
  }
};

/// Evaluates any convolution or dense layer except a circular one, between planes in memory of their own. The guards
/// of the source must be zero. `windows` are those of a strided convolution; `scratch` has two rows with a zero
/// margin before them.
template <typename Scalar>
void convolve(const ConvolvedPlanes& planes, const numerics::PlaneWindows& windows,
              const Plane<Scalar>& source, const Plane<Scalar>& target,
              const std::array<Scalar*, 2>& scratch);

/// Evaluates a convolution from the planes of another instruction, whose guards are cleared first unless its schedule
/// says that they are zero.
template <typename Scalar>
void convolve(const PlacedInstruction<Scalar>& from, const PlacedInstruction<Scalar>& to, Index stacked,
              const std::array<Scalar*, 2>& scratch);

/// Evaluates a convolution without weight sharing, from a kept input. Every offset except 0 is zero.
template <typename Scalar>
void convolve_locally(const TileWork<Scalar>& work, NodeId input, const PlacedInstruction<Scalar>& to,
                      Index pair, const Plane<Scalar>& target);

/// Evaluates a circular convolution entry by entry from a kept input, because windows around a border read planes of
/// offsets that differ by a whole axis.
template <typename Scalar>
void convolve_around(const TileWork<Scalar>& work, NodeId input, const PlacedInstruction<Scalar>& to,
                     Index pair, const Plane<Scalar>& target);

}  // namespace widelimit
