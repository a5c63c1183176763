#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <vector>

#include "store/pace.hpp"
#include "store/store_facts.hpp"
#include "store/store_folder.hpp"
#include "store/tile_claims.hpp"
#include "store/tile_files.hpp"
#include "store/tile_records.hpp"
#include "store/tile_source.hpp"
#include "widelimit/store/gram_store.hpp"

namespace widelimit::store {

/// One run over some tiles of a store. A tile is computed while the one before it is written.
template <typename Scalar>
class StoreRun {
 public:
  /// All must outlive it. `tiles`: their numbers.
  StoreRun(const StoreFolder& folder, const StoreFacts& facts, const StoreInputs<Scalar>& inputs,
           const StoreOptions& options, TileClaims& claims, const std::vector<Index>& tiles);

  /// next(): see GramStore::compute().
  StoreRunReport run(const std::function<Index()>& next);

 private:
  /// False if another process has it.
  bool take(Index tile);
  /// `record` says what computing it took.
  void write_behind(TileClaim claim, TileRecord record, GramResult<Scalar> kernels);
  void wait_for_writing();
  void wait_for_others(std::vector<Index> waiting);
  void note_damaged(const StoredTile<Scalar>& stored);
  void report_progress(Index in_this_tile);
  void check_stop() const;

  /// How many pairs there are and what became of them.
  struct Pairs {
    Index all = 0;
    Index found = 0;  ///< They were in the store already.
    Index computed = 0;
    std::atomic<Index> written = 0;  ///< So many of those computed.
  };

  const StoreOptions& options_;
  const std::vector<Index>& tiles_;
  TileGrid grid_;
  TileClaims& claims_;
  TileRecords records_;
  RecordWriter own_records_;
  TileFiles<Scalar> files_;
  TileSource<Scalar> source_;
  Pace pace_;
  Pairs pairs_;
  StoreRunReport report_;
  std::future<void> writing_;  ///< Of the tile before; ends before the rest.
};

}  // namespace widelimit::store
