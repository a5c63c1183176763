#pragma once

#include "kernel/planes/pair_stores.hpp"
#include "kernel/planes/tile.hpp"
#include "kernel/planes/workspace.hpp"
#include "kernel/step_timer.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit {

/// What the steps of a program work on: a tile, how its pairs lie, and the memory of the thread.
template <typename Scalar>
struct TileRun {
  const PairLayout& pair;
  const Tile<Scalar>& tile;
  Index side;  ///< Inputs a side that the workspace is made for.
  Workspace<Scalar>& workspace;
  PairStores<Scalar> stores;
  InputState<Scalar>* recorded;  ///< Of the tile's only input, where its state is recorded; else null.
  StepTimer& timer;
  StopRequest stop;

  [[nodiscard]] bool recording() const { return recorded != nullptr; }
};

}  // namespace widelimit
