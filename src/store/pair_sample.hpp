#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "widelimit/store/tile_grid.hpp"

namespace widelimit::store {

/// Different random pairs of a Gram matrix, tile by tile; all of them if no fewer are asked for.
class PairSample {
 public:
  /// `count` >= 1.
  PairSample(const TileGrid& grid, Index count, std::uint64_t seed);

  /// The pairs (i, j) of the next tile, in their order; i <= j of a symmetric matrix. To be called once for each tile.
  [[nodiscard]] std::vector<std::pair<Index, Index>> of_next_tile();

 private:
  /// Which of the next `pairs` pairs are taken: numbers from 0 on.
  [[nodiscard]] std::vector<Index> taken_of(Index pairs);

  TileGrid grid_;
  std::mt19937_64 random_;
  Index tile_ = 0;
  Index passed_ = 0;            ///< Pairs in the tiles before.
  Index wanted_;                ///< Pairs to be taken from the rest.
  bool is_sparse_;              ///< Few of many pairs are wanted and are drawn at once.
  std::vector<Index> numbers_;  ///< Sparse samples: numbers among all pairs, the next one last.
};

}  // namespace widelimit::store
