#pragma once

#include <memory>

#include "kernel/backends/cpu/planes/readout_sums.hpp"
#include "kernel/backends/cpu/planes/stacks.hpp"
#include "kernel/backends/cpu/planes/tile_work.hpp"

namespace widelimit {

/// Where the planes of a chain's root end: a readout, a pooling, a map of positions, or the store. Planes come in
/// groups that agree in their offset along the last axis.
template <typename Scalar>
class PlaneEnd {
 public:
  virtual ~PlaneEnd() = default;

  /// Empties the end for the chain's current tile.
  virtual void begin_tile() = 0;
  /// Says how the planes to come are laid out.
  virtual void place(const PlacedPlane& /*plane*/) {}
  /// Takes the planes of a stack; their guards are zero.
  virtual void put(const PlacedPlane& plane, const Stack& stack, const Plane<Scalar>& planes) = 0;
  virtual void end_group() {}
};

/// Makes the end of a chain for its target. `work` and `sums` must outlive it.
template <typename Scalar>
[[nodiscard]] std::unique_ptr<PlaneEnd<Scalar>> make_plane_end(const TileWork<Scalar>& work,
                                                               ReadoutSums<Scalar>& sums, NodeId target);

}  // namespace widelimit
