#pragma once

#include "kernel/planes/placed_instruction.hpp"
#include "kernel/planes/tile_run.hpp"

/// Convolutions and dense layers on a stack of planes.
namespace widelimit {

/// From the plane of another instruction. `source_gaps`: what that holds between its rows; `scratch`: two
/// rows with a zero margin in front.
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
