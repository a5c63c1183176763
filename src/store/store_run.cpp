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
      records_(folder.records_folder(facts)),
      own_records_(folder.records_folder(facts)),
      files_(folder, facts, records_),
      source_(inputs, facts,
              [&] {
                GramOptions of_tiles = options.gram;
                of_tiles.progress = [this](const GramProgress& progress) { report_progress(progress.done); };
                return of_tiles;
              }()),
      pace_(folder.pace_file(facts, options.part.number, options.part.parts)) {
  for (const Index tile : tiles) pairs_.all += grid_.pairs(grid_.tile(tile));
  records_.refresh();
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
  report_progress(0);
  pace_.keep(pairs_.computed, true);
  report_.seconds = pace_.seconds();
  return std::move(report_);
}

template <typename Scalar>
bool StoreRun<Scalar>::take(Index tile) {
  if (!claims_.claim(tile)) return false;
  TileClaim claim(claims_, tile);
  const TileIndex index = grid_.tile(tile);
  StoredTile<Scalar> stored = files_.read(index);
  note_damaged(stored);
  // Standard errors may be NaN, so a file of them that is not there is seen by the kernels only.
  if (stored.is_missing || !stored.damaged.empty()) stored.kernels = files_.empty();
  const double begin = pace_.seconds();
  if (source_.complete(index, stored.kernels)) {
    pairs_.computed += grid_.pairs(index);
    TileRecord record{index, grid_.pairs(index), 0, {}};
    wait_for_writing();
    record.seconds = pace_.seconds() - begin;
    write_behind(std::move(claim), std::move(record), std::move(stored.kernels));
  } else {
    pairs_.found += grid_.pairs(index);
    ++report_.found;
  }
  report_progress(0);
  return true;
}

template <typename Scalar>
void StoreRun<Scalar>::write_behind(TileClaim claim, TileRecord record, GramResult<Scalar> kernels) {
  writing_ = std::async(std::launch::async, [this, claim = std::move(claim), record = std::move(record),
                                             kernels = std::move(kernels)]() mutable {
    const TileClaim held = std::move(claim);
    const TileIndex tile = record.tile;
    if (claims_.are_kept()) files_.remove_unfinished(tile);
    files_.write(std::move(record), kernels, own_records_);
    pairs_.written += grid_.pairs(tile);
  });
  ++report_.computed;
}

template <typename Scalar>
void StoreRun<Scalar>::wait_for_writing() {
  if (!writing_.valid()) return;
  writing_.get();
  pace_.keep(pairs_.computed, false);
}

/// Until the tiles that other processes had are there, or can be had since those have ended.
template <typename Scalar>
void StoreRun<Scalar>::wait_for_others(std::vector<Index> waiting) {
  constexpr std::chrono::milliseconds first_interval{50}, last_interval{1000};
  // Where there are no locks, each look is some messages to a server.
  for (auto interval = first_interval; !waiting.empty();
       interval = claims_.are_kept() ? first_interval : std::min(2 * interval, last_interval)) {
    std::erase_if(waiting, [this](Index tile) {
      check_stop();
      return take(tile);
    });
    if (!waiting.empty()) std::this_thread::sleep_for(interval);
  }
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
  if (!options_.progress) return;
  const Index computed = pairs_.computed + in_this_tile, written = pairs_.written;
  const Index left = std::max<Index>(pairs_.all - pairs_.found - computed, 0);
  options_.progress({pairs_.found + written, computed - written, pairs_.all, pace_.pairs_per_second(computed),
                     pace_.seconds_left(computed, left)});
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
