#pragma once

#include <stop_token>
#include <utility>
#include <vector>

#include "store/pair_sample.hpp"
#include "store/store_folder.hpp"
#include "store/tile_files.hpp"
#include "store/tile_source.hpp"
#include "widelimit/store/gram_store.hpp"

namespace widelimit::store {

/// Computes pairs of a store again, each by itself, and compares bits.
template <typename Scalar>
class PairRecomputation {
 public:
  /// All must outlive it.
  PairRecomputation(const StoreFolder& folder, const StoreFacts& facts, const StoreInputs<Scalar>& inputs,
                    const StoreOptions& options)
      : facts_{facts},
        records_(folder, facts, options.unrecorded),
        files_(folder, facts, records_),
        source_(inputs, facts, options.gram),
        stop_{options.gram.stop} {
    records_.refresh();
  }

  /// Throws DataError for tiles that are damaged; pairs that are not there are left out. Cancelled on request.
  [[nodiscard]] std::vector<StoreMismatch> run(PairSample& sample);
  /// Pairs that were there.
  [[nodiscard]] Index compared() const { return compared_; }

 private:
  /// `i`, `j` in the whole matrix, `row`, `column` in the tile.
  void compare(GramResult<Scalar>& stored, Index i, Index j, Index row, Index column);

  const StoreFacts& facts_;
  TileRecords records_;
  TileFiles<Scalar> files_;
  TileSource<Scalar> source_;
  std::stop_token stop_;
  Index compared_ = 0;
  std::vector<StoreMismatch> mismatches_;
};

}  // namespace widelimit::store
