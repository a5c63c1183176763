#pragma once

#include <memory>

#include "kernel/planes/readout_sums.hpp"
#include "kernel/planes/stacks.hpp"
#include "kernel/planes/tile_run.hpp"

namespace widelimit {

/// Where the planes of a run end: a readout, a pooling, or the store of the run's root.
///
/// Planes come in groups that agree in their offset along the last axis.
template <typename Scalar>
class PlaneEnd {
 public:
  virtual ~PlaneEnd() = default;

  /// What comes is of the run's current tile, and the end is empty.
  virtual void begin_tile() = 0;
  /// The planes to come lie like this.
  virtual void place(const PlacedPlane& /*plane*/) {}
  /// Takes the planes of a stack; their guards are zero.
  virtual void put(const PlacedPlane& plane, const Stack& stack, const Plane<Scalar>& planes) = 0;
  virtual void end_group() {}
};

/// The end of a run that belongs to its target. `run` and `sums` must outlive it.
template <typename Scalar>
[[nodiscard]] std::unique_ptr<PlaneEnd<Scalar>> make_plane_end(const TileRun<Scalar>& run,
                                                               ReadoutSums<Scalar>& sums, NodeId target);

}  // namespace widelimit
