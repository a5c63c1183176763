#include "store/store_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "widelimit/error.hpp"

namespace widelimit::store {

template <typename Scalar>
StoreRun<Scalar>::StoreRun(const StoreFolder& folder, const StoreFacts& facts,
                           const StoreInputs<Scalar>& inputs, const StoreOptions& options, TileClaims& claims,
                           const std::vector<Index>& tiles)
    : options_{options},
      tiles_{tiles},
      grid_{facts.grid()},
      claims_{claims},
      records_(folder, facts, options.unrecorded),
      own_records_(folder.records_folder(facts), StoreSeals(facts)),
      files_(folder, facts, records_),
      source_(inputs, facts, [&] {
        GramOptions of_tiles = options.gram;
        of_tiles.progress = [this](const GramProgress& progress) { report_progress(progress.done); };
        return of_tiles;
      }()) {
  records_.refresh();
  if (options_.progress) progress_.emplace(folder, facts, records_, tiles);
  folder.remove_leftovers(facts);
  if (!claims_.are_kept() && options_.report)
    options_.report(
        "the file system of the store has no locks: processes claim tiles by files, and those of a process "
        "that "
        "is killed on another machine are free two minutes later");
}

template <typename Scalar>
StoreRunReport StoreRun<Scalar>::run(const std::function<Index()>& next) {
  std::vector<Index> waiting;
  const auto count = static_cast<Index>(tiles_.size());
  for (Index place = next(); place < count; place = next()) {
    check_stop();
    const Index tile = tiles_[static_cast<std::size_t>(place)];
    if (!take(tile)) waiting.push_back(tile);
  }
  wait_for_others(std::move(waiting));
  wait_for_writing();
  if (progress_) progress_->refresh();
  report_progress(0);
  files_.require_there(work_.taken);
  records_.require_again(grid_, work_.taken);
  report_.seconds = seconds();
  return std::move(report_);
}

template <typename Scalar>
bool StoreRun<Scalar>::take(Index tile) {
  if (!claims_.claim(tile)) return false;
  TileClaim claim(claims_, tile);
  const TileIndex index = grid_.tile(tile);
  StoredTile<Scalar> stored = files_.read(index);
  note_damaged(stored);
  // Standard errors may be NaN by right, so that a missing file of them could not be seen later: the
  // whole tile is computed again.
  if (stored.is_missing || !stored.damaged.empty()) stored.kernels = files_.empty();
  work_.tile_began = seconds();
  if (completed(index, stored.kernels)) {
    if (progress_) progress_->begin(tile);
    work_.computed += grid_.pairs(index);
    TileRecord record{index, grid_.pairs(index), 0, {}};
    // Writing the tile before overlaps with computing this one and is waited for here, as only
    // one is written at a time.
    wait_for_writing();
    record.seconds = seconds() - work_.tile_began;
    work_.seconds += record.seconds;
    write_later(std::move(claim), std::move(record), std::move(stored.kernels));
  } else {
    if (stored.unrecorded > 0) write_down(index, stored.kernels);
    ++report_.found;
  }
  work_.taken.push_back(tile);
  report_progress(0);
  return true;
}

/// A stop within a tile is told by the tiles that are there.
template <typename Scalar>
bool StoreRun<Scalar>::completed(TileIndex tile, GramResult<Scalar>& kernels) {
  try {
    return source_.complete(tile, kernels);
  } catch (const Cancelled&) {
    check_stop();
    throw;
  }
}

template <typename Scalar>
void StoreRun<Scalar>::write_later(TileClaim claim, TileRecord record, GramResult<Scalar> kernels) {
  writing_ = std::async(std::launch::async, [this, claim = std::move(claim), record = std::move(record),
                                             kernels = std::move(kernels)]() mutable {
    // The claim ends with this task, after the tile is written.
    const TileClaim held = std::move(claim);
    const TileIndex tile = record.tile;
    if (claims_.are_kept()) files_.remove_unfinished(tile);
    files_.write(std::move(record), kernels, own_records_);
    work_.written += grid_.pairs(tile);
    if (progress_) progress_->end(held.tile());
  });
  ++report_.computed;
}

/// That a tile belongs here, which was accepted without a record: later runs need not be told again.
template <typename Scalar>
void StoreRun<Scalar>::write_down(TileIndex tile, GramResult<Scalar>& kernels) {
  wait_for_writing();
  files_.write_down({tile, grid_.pairs(tile), 0, {}}, kernels, own_records_);
}

template <typename Scalar>
void StoreRun<Scalar>::wait_for_writing() {
  if (!writing_.valid()) return;
  writing_.get();
}

/// Waits until the tiles that other processes had are there, or can be claimed because those have ended.
template <typename Scalar>
void StoreRun<Scalar>::wait_for_others(std::vector<Index> waiting) {
  constexpr std::chrono::milliseconds first_interval{50}, last_interval{1000};
  constexpr double seconds_between_words = 300;
  double next_word = seconds() + options_.silent_waiting_seconds;
  work_.waits = true;
  // Where there are no locks, each look is some messages to a server.
  for (auto interval = first_interval; !waiting.empty();
       interval = claims_.are_kept() ? first_interval : std::min(2 * interval, last_interval)) {
    std::erase_if(waiting, [this](Index tile) {
      check_stop();
      return take(tile);
    });
    if (!waiting.empty() && seconds() >= next_word) {
      tell_of_waiting(waiting.front(), waiting.size());
      next_word = seconds() + seconds_between_words;
    }
    report_progress(0);
    if (!waiting.empty()) std::this_thread::sleep_for(interval);
  }
}

template <typename Scalar>
void StoreRun<Scalar>::tell_of_waiting(Index tile, std::size_t count) const {
  if (!options_.report) return;
  const TileIndex index = grid_.tile(tile);
  const auto holder = claims_.holder(tile);
  options_.report(
      fmt::format("waiting for tile ({}, {}) of {}{}", index.row, index.column,
                  holder ? fmt::format("process {} on {}", holder->process, holder->host) : "another process",
                  count > 1 ? fmt::format(", and for {} more", count - 1) : ""));
}

template <typename Scalar>
double StoreRun<Scalar>::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

template <typename Scalar>
void StoreRun<Scalar>::note_damaged(const StoredTile<Scalar>& stored) {
  for (const FileDamage& damage : stored.damaged) {
    report_.damaged.push_back(damage.file);
    if (options_.report)
      options_.report(fmt::format("{}: damaged: {}; computed again", damage.file, damage.what));
  }
}

template <typename Scalar>
void StoreRun<Scalar>::report_progress(Index in_this_tile) {
  if (!progress_) return;
  const Index computed = work_.computed + in_this_tile;
  const Index unwritten = std::max<Index>(computed - work_.written, 0);
  if (work_.computed == 0 && in_this_tile > 0) {
    work_.first_tile.take(static_cast<double>(computed), seconds());
    // Pairs of a second: without any the pace of earlier runs and of others is told.
    options_.progress(progress_->state({work_.first_tile.rate().value_or(0), 1, unwritten}));
    return;
  }
  double busy = work_.seconds + (in_this_tile > 0 ? seconds() - work_.tile_began : 0);
  if (work_.waits && in_this_tile == 0) busy = 0;  // It adds nothing to the pace of the others.
  options_.progress(progress_->state({static_cast<double>(computed), busy, unwritten}));
}

template <typename Scalar>
void StoreRun<Scalar>::check_stop() const {
  if (options_.gram.stop.stop_requested())
    throw Cancelled(fmt::format("store: stopped on request after {} tiles, which are in the store",
                                report_.computed + report_.found));
}

template class StoreRun<float>;
template class StoreRun<double>;

}  // namespace widelimit::store
