#include "store/tile_parts.hpp"

#include <algorithm>

namespace widelimit::store {

GrowthStep growth_step(const std::vector<Index>& steps, std::size_t number) {
  return {number == 0 ? 0 : steps[number - 1], steps[number]};
}

std::vector<TilePart> parts_of(const TileGrid& tiles, TileIndex tile, GrowthStep step, Index grid) {
  const InputRange rows = tiles.rows_of(tile), columns = tiles.columns_of(tile);
  // The inputs of a side that are computed: from the last line of the grid before the step on.
  const auto of_step = [&](InputRange side) {
    return InputRange{std::max(side.begin, step.begin - step.begin % grid), std::min(side.end, step.end)};
  };
  const auto is_touched = [&](InputRange side) { return side.end > step.begin && side.begin < step.end; };
  if (!tiles.is_symmetric())
    return is_touched(rows) ? std::vector<TilePart>{{of_step(rows), columns}} : std::vector<TilePart>{};
  if (!is_touched(columns)) return {};
  const InputRange joined = of_step(columns);
  if (tile.row != tile.column) return {{rows, joined}};
  std::vector<TilePart> parts{{joined, joined}};
  // On the diagonal the joined inputs also meet those that the tile had before.
  if (joined.begin > rows.begin) parts.push_back({{rows.begin, joined.begin}, joined});
  return parts;
}

}  // namespace widelimit::store
