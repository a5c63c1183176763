#include "widelimit/store/tile_grid.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "widelimit/error.hpp"

namespace widelimit::store {

TileGrid::TileGrid(Index rows, Index columns, Index side, bool is_symmetric)
    : rows_{rows}, columns_{columns}, side_{side}, is_symmetric_{is_symmetric} {
  if (rows < 1 || columns < 1 || side < 1 || (is_symmetric && rows != columns))
    throw ArgumentError(
        fmt::format("TileGrid: expected positive sizes, equal ones of a symmetric matrix, got {} x {} "
                    "in tiles of {}{}",
                    rows, columns, side, is_symmetric ? ", symmetric" : ""));
}

Index TileGrid::first_of_row(Index row) const {
  // Row r of tiles of a symmetric matrix begins on the diagonal and has r tiles fewer than the first.
  return is_symmetric_ ? row * tile_columns() - row * (row - 1) / 2 : row * tile_columns();
}

Index TileGrid::count() const { return first_of_row(tile_rows()); }

TileIndex TileGrid::tile(Index number) const {
  // The last row of tiles that begins at or before the number.
  Index row = 0, end = tile_rows();
  while (end - row > 1) {
    const Index middle = row + (end - row) / 2;
    (first_of_row(middle) <= number ? row : end) = middle;
  }
  return {row, number - first_of_row(row) + (is_symmetric_ ? row : 0)};
}

InputRange TileGrid::range(Index number, Index size) const {
  return {number * side_, std::min((number + 1) * side_, size)};
}

Index TileGrid::pairs(TileIndex tile) const {
  const Index rows = rows_of(tile).size(), columns = columns_of(tile).size();
  return is_symmetric_ && tile.row == tile.column ? rows * (rows + 1) / 2 : rows * columns;
}

Index TileGrid::pairs() const { return is_symmetric_ ? rows_ * (rows_ + 1) / 2 : rows_ * columns_; }

}  // namespace widelimit::store
