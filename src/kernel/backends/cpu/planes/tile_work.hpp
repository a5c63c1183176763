#pragma once

#include "kernel/backends/cpu/planes/pair_stores.hpp"
#include "kernel/backends/cpu/planes/tile.hpp"
#include "kernel/backends/cpu/planes/workspace.hpp"
#include "kernel/step_timer.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit {

/// What the steps of a program work on: the layout of pairs of inputs of some shapes, the memory of the thread, and
/// one tile after the other.
template <typename Scalar>
struct TileWork {
  const PairLayout& pair;
  TileSize size;  ///< The largest tiles for which the workspace is made.
  Workspace<Scalar>& workspace;
  PairStores<Scalar> stores;
  StepTimer& timer;
  StopRequest stop;
  const Tile<Scalar>* current = nullptr;
  InputState<Scalar>* recorded = nullptr;  ///< The state of the tile's only input, while states are recorded.

  [[nodiscard]] const Tile<Scalar>& tile() const { return *current; }
  [[nodiscard]] bool recording() const { return pair.purpose == Purpose::state; }
};

}  // namespace widelimit
