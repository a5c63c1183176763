#pragma once

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "files/process_identity.hpp"
#include "store/store_facts.hpp"
#include "store/store_folder.hpp"
#include "store/tile_records.hpp"
#include "widelimit/store/gram_store.hpp"

namespace widelimit::store {

/// How far a store is and how fast all processes that compute it are, from what lies in it and what they write down.
class SharedProgress {
 public:
  /// What this process does beside what it has written down.
  struct Own {
    double pairs = 0;    ///< Pairs computed so far, those of the tile in work included.
    double seconds = 0;  ///< The time that these pairs took.
    Index in_work = 0;   ///< Pairs that are computed and not yet in the store.
  };

  /// All must outlive it. `tiles`: those that count, by their numbers.
  SharedProgress(const StoreFolder& folder, const StoreFacts& facts, TileRecords& records,
                 const std::vector<Index>& tiles)
      : folder_{folder}, facts_{facts}, grid_{facts.grid()}, records_{records} {
    records_.refresh();
    for (const Index number : tiles) {
      const TileIndex index = grid_.tile(number);
      places_.emplace(number, tiles_.size());
      tiles_.push_back(
          {.index = index, .is_there = has_files(index), .times_before = records_.history_of(index).times});
      pairs_ += grid_.pairs(index);
    }
    count();
  }

  /// This process computes a tile, and has put it into the store: it counts from then on, and what is written down of
  /// it does not. Another thread may call it.
  void begin(Index tile) { set(tile, Stage::in_work); }
  void end(Index tile) { set(tile, Stage::written); }

  /// What others have written down is looked at again after some seconds, as it may lie after a network.
  [[nodiscard]] StoreProgress state(const Own& own) {
    constexpr double interval = 2;
    if (seconds_since(looked_at_) > interval) refresh();
    const std::scoped_lock lock(mutex_);
    const double since_look = seconds_since(looked_at_);
    double rate = own.pairs > 0 && own.seconds > 0 ? own.pairs / own.seconds : 0;
    double in_work = static_cast<double>(own.in_work);
    for (const TileRecords::ProcessPace& other : working_) {
      constexpr double most = 0.95;  // A tile in work is never whole.
      rate += other.pairs_per_second;
      in_work +=
          std::min(most * other.pairs_a_tile, other.pairs_per_second * (other.seconds_since + since_look));
    }
    if (rate == 0) rate = earlier_rate_;
    const double left = std::max(0.0, static_cast<double>(pairs_ - there_) - in_work);
    const double seconds = there_ == pairs_ ? 0
                           : rate > 0       ? left / rate
                                            : std::numeric_limits<double>::infinity();
    return {.pairs_done = there_,
            .pairs_computed = std::min(static_cast<Index>(in_work), pairs_ - there_),
            .pairs = pairs_,
            .pairs_per_second = rate,
            .seconds_left = seconds,
            .tiles_done = tiles_there_,
            .tiles = static_cast<Index>(tiles_.size()),
            .processes = static_cast<Index>(working_.size()) + (own.seconds > 0 ? 1 : 0)};
  }

  /// Looks again at once.
  void refresh() {
    records_.refresh();
    count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  /// What this process has to do with a tile.
  enum class Stage { others, in_work, written };

  /// A tile that counts.
  struct Tile {
    TileIndex index;
    Stage own = Stage::others;
    bool is_counted = false;
    bool is_there = false;   ///< Its files lie in the store.
    Index times_before = 0;  ///< How often it had been computed before.
  };

  static double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  [[nodiscard]] bool has_files(TileIndex tile) const {
    std::error_code error;
    return std::ranges::all_of(facts_.arrays(), [&](const std::string& array) {
      return std::filesystem::is_regular_file(folder_.chunk(array, tile), error);
    });
  }

  void set(Index tile, Stage stage) {
    const auto place = places_.find(tile);
    if (place == places_.end()) return;
    const std::scoped_lock lock(mutex_);
    Tile& changed = tiles_[place->second];
    changed.own = stage;
    take(changed, stage == Stage::written);
  }

  /// Counts a tile as whole, or no longer.
  void take(Tile& tile, bool is_whole) {
    if (tile.is_counted == is_whole) return;
    tile.is_counted = is_whole;
    there_ += (is_whole ? 1 : -1) * grid_.pairs(tile.index);
    tiles_there_ += is_whole ? 1 : -1;
  }

  void count() {
    const std::scoped_lock lock(mutex_);
    looked_at_ = Clock::now();
    for (Tile& tile : tiles_) {
      if (tile.own != Stage::others) continue;
      const TileRecords::TileHistory history = records_.history_of(tile.index);
      // What is written down is put in its place a moment later.
      if (!tile.is_there && history.times != tile.times_before) tile.is_there = has_files(tile.index);
      take(tile, tile.is_there && (history.times == 0 || history.pairs >= grid_.pairs(tile.index)));
    }
    const files::ProcessIdentity self = files::this_process();
    working_.clear();
    double last = std::numeric_limits<double>::infinity();
    for (const TileRecords::ProcessPace& pace : records_.paces()) {
      if (pace.seconds_since < last) {
        last = pace.seconds_since;
        earlier_rate_ = pace.pairs_per_second;
      }
      if (pace.process != self && is_working(pace)) working_.push_back(pace);
    }
  }

  /// Whether a process still computes. Of one on another machine it can only be seen that it has
  /// written nothing down for long.
  static bool is_working(const TileRecords::ProcessPace& pace) {
    constexpr double least = 60, tiles = 4;
    return pace.seconds_since < std::max(least, tiles * pace.seconds_a_tile) &&
           !files::has_ended(pace.process);
  }

  const StoreFolder& folder_;
  const StoreFacts& facts_;
  TileGrid grid_;
  TileRecords& records_;
  std::vector<Tile> tiles_;
  std::unordered_map<Index, std::size_t> places_;  ///< Places in tiles_ by the numbers of tiles.
  std::mutex mutex_;
  Index pairs_ = 0;
  Index there_ = 0;
  Index tiles_there_ = 0;
  double earlier_rate_ = 0;
  std::vector<TileRecords::ProcessPace> working_;  ///< Other processes.
  Clock::time_point looked_at_;
};

}  // namespace widelimit::store
