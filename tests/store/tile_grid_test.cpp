// Grids of tiles and the parts that are computed of a tile: every pair once.
#include "widelimit/store/tile_grid.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "store/tile_parts.hpp"
#include "widelimit/error.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::store {
namespace {

TEST_CASE("tile grids number every tile once and cover every pair once") {
  for (const bool symmetric : {true, false})
    for (const Index side : {1, 3, 4, 10, 11}) {
      const TileGrid grid(10, symmetric ? 10 : 7, side, symmetric);
      Matrix<int> covered = Matrix<int>::Zero(grid.rows(), grid.columns());
      Index pairs = 0;
      for (Index t = 0; t < grid.count(); ++t) {
        const TileIndex tile = grid.tile(t);
        const InputRange rows = grid.rows_of(tile), columns = grid.columns_of(tile);
        covered.block(rows.begin, columns.begin, rows.size(), columns.size()).array() += 1;
        pairs += grid.pairs(tile);
        if (symmetric) CHECK(tile.row <= tile.column);
      }
      CHECK(pairs == grid.pairs());
      for (Index i = 0; i < grid.rows(); ++i)
        for (Index j = 0; j < grid.columns(); ++j)
          if (!symmetric || j >= i) CHECK(covered(i, j) == 1);
    }
  CHECK_THROWS_AS(TileGrid(3, 4, 2, true), ArgumentError);
  CHECK_THROWS_AS(TileGrid(3, 3, 0, true), ArgumentError);
}

/// How often each pair of a store that grew is computed for its own step; of a symmetric one, those of both triangles.
Matrix<int> computed_pairs(const TileGrid& grid, const std::vector<Index>& steps, Index vector_grid) {
  Matrix<int> times = Matrix<int>::Zero(grid.rows(), grid.columns());
  for (Index t = 0; t < grid.count(); ++t) {
    const TileIndex tile = grid.tile(t);
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const GrowthStep step = growth_step(steps, s);
      for (const TilePart& part : parts_of(grid, tile, step, vector_grid)) {
        CHECK(part.rows.begin % vector_grid == 0);
        CHECK(part.columns.begin % vector_grid == 0);
        for_each_pair_of_step(part, grid.is_symmetric(), step, [&](Index i, Index j) {
          ++times(i, j);
          if (grid.is_symmetric() && part.rows != part.columns) ++times(j, i);
        });
      }
    }
  }
  return times;
}

TEST_CASE("parts of tiles: every pair is computed once, in its own step") {
  for (const Index side : {4, 12, 16})
    for (const Index vector_grid : {1, 2, 4})
      for (const std::vector<Index>& steps :
           {std::vector<Index>{23}, {5, 23}, {4, 8, 9, 23}, {22, 23}, {1, 2, 23}}) {
        CAPTURE(side);
        CAPTURE(vector_grid);
        CHECK((computed_pairs(TileGrid(23, 23, side, true), steps, vector_grid).array() == 1).all());
        CHECK((computed_pairs(TileGrid(23, 9, side, false), steps, vector_grid).array() == 1).all());
      }
}

}  // namespace
}  // namespace widelimit::store
