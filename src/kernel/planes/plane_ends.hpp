#pragma once

#include <memory>

#include "kernel/planes/readout_sums.hpp"
#include "kernel/planes/stacks.hpp"
#include "kernel/planes/tile_run.hpp"

namespace widelimit {

/// Where the planes of a run's root end: a readout, a pooling, a map of positions, or the store. Planes come in
/// groups that agree in their offset along the last axis.
template <typename Scalar>
class PlaneEnd {
 public:
  virtual ~PlaneEnd() = default;

  /// Empties the end for the run's current tile.
  virtual void begin_tile() = 0;
  /// Says how the planes to come are laid out.
  virtual void place(const PlacedPlane& /*plane*/) {}
  /// Takes the planes of a stack; their guards are zero.
  virtual void put(const PlacedPlane& plane, const Stack& stack, const Plane<Scalar>& planes) = 0;
  virtual void end_group() {}
};

/// Makes the end of a run for its target. `run` and `sums` must outlive it.
template <typename Scalar>
[[nodiscard]] std::unique_ptr<PlaneEnd<Scalar>> make_plane_end(const TileRun<Scalar>& run,
                                                               ReadoutSums<Scalar>& sums, NodeId target);

}  // namespace widelimit
