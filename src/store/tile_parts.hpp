#pragma once

#include <vector>

#include "widelimit/kernel/gram_tiles.hpp"
#include "widelimit/store/tile_grid.hpp"

namespace widelimit::store {

/// Inputs that joined a store together: rows [begin, end).
struct GrowthStep {
  Index begin;
  Index end;
};

/// The inputs of step `number`, from the totals after each step (StoreFacts::steps()).
[[nodiscard]] GrowthStep growth_step(const std::vector<Index>& steps, std::size_t number);

/// A rectangle of pairs that is computed at once.
struct TilePart {
  InputRange rows;
  InputRange columns;
};

/// What is computed of a tile for the pairs that came with a step, those whose later row (or only row, of a matrix that
/// is not symmetric) is one of it. Parts begin on the grid of GramTiles, so they may hold a few pairs of earlier steps.
[[nodiscard]] std::vector<TilePart> parts_of(const TileGrid& tiles, TileIndex tile, GrowthStep step,
                                             Index grid);

/// Calls use(i, j) for the pairs of a part that came with the step.
template <typename Use>
void for_each_pair_of_step(const TilePart& part, bool is_symmetric, GrowthStep step, const Use& use) {
  for (Index i = part.rows.begin; i < part.rows.end; ++i)
    for (Index j = part.columns.begin; j < part.columns.end; ++j) {
      const Index later = is_symmetric && j > i ? j : i;
      if (later >= step.begin && later < step.end) use(i, j);
    }
}

}  // namespace widelimit::store
