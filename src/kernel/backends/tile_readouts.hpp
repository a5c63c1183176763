#pragma once

#include "kernel/backends/cpu/planes/tile.hpp"
#include "kernel/step_timer.hpp"
#include "network/graph.hpp"

namespace widelimit {

/// What computes everything with positions: tiles of pairs in, the values of readouts out.
template <typename Scalar>
class TileReadouts {
 public:
  TileReadouts() = default;
  TileReadouts(const TileReadouts&) = delete;
  TileReadouts& operator=(const TileReadouts&) = delete;
  virtual ~TileReadouts() = default;

  /// All inputs of a side have one shape and belong to the block of that side.
  virtual void run(const Tile<Scalar>& tile, const StateBlock<Scalar>& left,
                   const StateBlock<Scalar>& right) = 0;

  struct Entry {
    double nngp = 0;
    double ntk = 0;
  };
  /// The value of a readout for a pair of the last tile.
  [[nodiscard]] virtual Entry readout(NodeId node, Index pair) const = 0;

  /// The time of every node; null where it is not measured.
  [[nodiscard]] virtual StepTimer* timer() { return nullptr; }
};

}  // namespace widelimit
