#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <vector>

#include "numerics/blas_threads.hpp"
#include "store/shared_progress.hpp"
#include "store/store_facts.hpp"
#include "store/store_folder.hpp"
#include "store/tile_claims.hpp"
#include "store/tile_files.hpp"
#include "store/tile_records.hpp"
#include "store/tile_source.hpp"
#include "widelimit/pace.hpp"
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
  void write_later(TileClaim claim, TileRecord record, GramResult<Scalar> kernels);
  void write_down(TileIndex tile, GramResult<Scalar>& kernels);
  void wait_for_writing();
  void wait_for_others(std::vector<Index> waiting);
  void tell_of_waiting(Index tile, std::size_t count) const;
  bool completed(TileIndex tile, GramResult<Scalar>& kernels);
  void note_damaged(const StoredTile<Scalar>& stored);
  void report_progress(Index in_this_tile);
  void check_stop() const;

  [[nodiscard]] double seconds() const;

  /// What became of pairs, and what it took.
  struct Work {
    explicit Work(int threads) : first_tile(threads) {}

    Index computed = 0;
    std::atomic<Index> written = 0;  ///< Those of them that are in the store.
    double seconds = 0;
    double tile_began = 0;          ///< When the tile in work began, in seconds().
    Pace first_tile;                ///< Of the first tile, whose time is that of much else.
    bool waits = false;             ///< Whether it waits for tiles of others.
    std::vector<Index> taken = {};  ///< The tiles that it reports.
  };

  const StoreOptions& options_;
  const std::vector<Index>& tiles_;
  TileGrid grid_;
  TileClaims& claims_;
  TileRecords records_;
  RecordWriter own_records_;
  TileFiles<Scalar> files_;
  TileSource<Scalar> source_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Work work_{numerics::resolve_threads(options_.gram.threads, "store")};
  std::optional<SharedProgress> progress_;  ///< There if somebody wants to know.
  StoreRunReport report_;
  std::future<void> writing_;  ///< Writes the tile before. Last, so that it ends before the other members go.
};

}  // namespace widelimit::store
