#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "store/store_folder.hpp"
#include "store/tile_files.hpp"
#include "store/tile_source.hpp"
#include "widelimit/store/gram_store.hpp"

namespace widelimit::store {

/// Pairs of inputs by the tile (row, column) that holds them, which is read once for all of its pairs.
using PairsOfTiles = std::map<std::pair<Index, Index>, std::vector<std::pair<Index, Index>>>;

/// So many pairs (i, j), some perhaps several times; i <= j of a symmetric matrix.
[[nodiscard]] PairsOfTiles random_pairs(const TileGrid& grid, Index count, std::uint64_t seed);

/// Computes pairs of a store again, each by itself, and compares bits.
template <typename Scalar>
class PairRecomputation {
 public:
  /// All must outlive it.
  PairRecomputation(const StoreFolder& folder, const StoreFacts& facts, const StoreInputs<Scalar>& inputs,
                    const GramOptions& options)
      : facts_{facts}, files_(folder, facts), source_(inputs, facts, options) {}

  /// Throws DataError for tiles that are damaged; pairs that are not there are left out.
  [[nodiscard]] std::vector<StoreMismatch> run(const PairsOfTiles& pairs);

 private:
  /// `i`, `j` in the whole matrix, `row`, `column` in the tile.
  void compare(GramResult<Scalar>& stored, Index i, Index j, Index row, Index column);

  const StoreFacts& facts_;
  TileFiles<Scalar> files_;
  TileSource<Scalar> source_;
  std::vector<StoreMismatch> mismatches_;
};

}  // namespace widelimit::store
