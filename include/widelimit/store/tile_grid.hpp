#pragma once

#include "widelimit/kernel/gram_tiles.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit::store {

/// A tile of a Gram matrix by its row and column of tiles.
struct TileIndex {
  Index row;
  Index column;

  [[nodiscard]] bool operator==(const TileIndex&) const = default;
};

/// The tiles of a Gram matrix: squares of `side` inputs, smaller ones at its end; for a symmetric matrix those on and
/// above the diagonal, because the others are their mirror images.
class TileGrid {
 public:
  /// Throws ArgumentError for sizes below 1, and a symmetric grid that is not square.
  TileGrid(Index rows, Index columns, Index side, bool is_symmetric);

  [[nodiscard]] Index rows() const { return rows_; }        ///< Inputs.
  [[nodiscard]] Index columns() const { return columns_; }  ///< Inputs.
  [[nodiscard]] Index side() const { return side_; }
  [[nodiscard]] bool is_symmetric() const { return is_symmetric_; }

  [[nodiscard]] Index tile_rows() const { return (rows_ + side_ - 1) / side_; }
  [[nodiscard]] Index tile_columns() const { return (columns_ + side_ - 1) / side_; }
  /// Number of tiles.
  [[nodiscard]] Index count() const;
  /// Tile `number` of 0 .. count() - 1, row by row.
  [[nodiscard]] TileIndex tile(Index number) const;

  /// The inputs of a tile's rows and columns.
  [[nodiscard]] InputRange rows_of(TileIndex tile) const { return range(tile.row, rows_); }
  [[nodiscard]] InputRange columns_of(TileIndex tile) const { return range(tile.column, columns_); }
  /// Pairs that are computed for it: for one on the diagonal, those of one triangle.
  [[nodiscard]] Index pairs(TileIndex tile) const;
  /// Pairs of all tiles.
  [[nodiscard]] Index pairs() const;

 private:
  [[nodiscard]] InputRange range(Index number, Index size) const;
  /// The number of the first tile of a row of tiles.
  [[nodiscard]] Index first_of_row(Index row) const;

  Index rows_;
  Index columns_;
  Index side_;
  bool is_symmetric_;
};

}  // namespace widelimit::store
