#pragma once

#include <cstddef>

#include "widelimit/index.hpp"

/// How often states of inputs are made, where not all of them fit into memory: a pair needs those of both inputs.
namespace widelimit {

/// What fits into memory.
struct StateRoom {
  double state_bytes;        ///< Of one input.
  std::size_t memory_bytes;  ///< For all states.
  Index step = 1;            ///< Blocks of inputs end at multiples of this.
};

/// The inputs of a block, of which GramComputation holds two.
[[nodiscard]] Index inputs_a_block(const StateRoom& room);

/// By GramComputation, for one batch.
[[nodiscard]] double states_made(Index inputs, const StateRoom& room);
/// For two batches.
[[nodiscard]] double states_made(Index rows, Index columns, const StateRoom& room);

/// By GramTiles, which keeps the states used last, where tiles of so many inputs a side are computed row by row.
[[nodiscard]] double states_made_in_tiles(Index inputs, Index side, const StateRoom& room);
[[nodiscard]] double states_made_in_tiles(Index rows, Index columns, Index side, const StateRoom& room);

}  // namespace widelimit
