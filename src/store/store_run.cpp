#include "store/store_run.hpp"

#include <fmt/format.h>

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
      files_(folder, facts),
      source_(inputs, facts,
              [&] {
                GramOptions of_tiles = options.gram;
                of_tiles.progress = [this](const GramProgress& progress) { report_progress(progress.done); };
                return of_tiles;
              }()),
      pace_(folder.pace_file(facts, options.part.number, options.part.parts)) {
  for (const Index tile : tiles) pairs_.all += grid_.pairs(grid_.tile(tile));
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
  if (!claims_.are_kept() && options_.report)
    options_.report(
        "the file system of the store has no locks: processes without parts compute some tiles twice");
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
  if (source_.complete(index, stored.kernels)) {
    pairs_.computed += grid_.pairs(index);
    write_behind(std::move(claim), std::move(stored.kernels));
  } else {
    pairs_.found += grid_.pairs(index);
    ++report_.found;
  }
  report_progress(0);
  return true;
}

template <typename Scalar>
void StoreRun<Scalar>::write_behind(TileClaim claim, GramResult<Scalar> kernels) {
  wait_for_writing();
  writing_ = std::async(std::launch::async,
                        [this, claim = std::move(claim), kernels = std::move(kernels)]() mutable {
                          const TileClaim held = std::move(claim);
                          const TileIndex tile = grid_.tile(held.tile());
                          if (claims_.are_kept()) files_.remove_unfinished(tile);
                          files_.write(tile, kernels);
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
  constexpr std::chrono::milliseconds interval{50};
  while (!waiting.empty()) {
    std::erase_if(waiting, [this](Index tile) {
      check_stop();
      return take(tile);
    });
    if (!waiting.empty()) std::this_thread::sleep_for(interval);
  }
}

template <typename Scalar>
void StoreRun<Scalar>::note_damaged(const StoredTile<Scalar>& stored) {
  for (const std::string& file : stored.damaged) {
    report_.damaged.push_back(file);
    if (options_.report)
      options_.report(fmt::format("{}: damaged: its checksum or length is wrong; computed again", file));
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
