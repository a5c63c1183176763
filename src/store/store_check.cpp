#include <fmt/format.h>

#include <set>

#include "store/chunk_file.hpp"
#include "store/stored_gram_open.hpp"
#include "widelimit/error.hpp"

namespace widelimit::store {
namespace {

/// Looks at every file of a store, and goes on whatever it finds.
template <typename Scalar>
class FileCheck {
 public:
  FileCheck(const StoreFolder& folder, const StoreFacts& facts, TileRecords& records)
      : folder_{folder}, facts_{facts}, records_{records}, files_(folder, facts, records) {}

  StoreCheck run(const std::function<void(Index, Index)>& progress, const std::stop_token& stop) {
    const TileGrid grid = facts_.grid();
    check_.tiles = grid.count();
    check_documents();
    for (Index t = 0; t < check_.tiles; ++t) {
      if (stop.stop_requested())
        throw Cancelled(fmt::format("store: stopped on request after {} of {} tiles", t, check_.tiles));
      check_tile(grid.tile(t));
      if (progress) progress(t + 1, check_.tiles);
    }
    check_.strange_records = records_.strange_lines();
    check_.records_name_store = facts_.format_version() != unsealed_format_version;
    return std::move(check_);
  }

 private:
  void check_documents() {
    for (const std::string& array : folder_.wrong_documents(facts_)) {
      const auto file = folder_.document(array);
      if (const auto obstacle = what_blocks(file))
        add_obstacle(*obstacle);
      else
        add_damage({file.string(), "it is not there, or does not say what the array is"});
    }
  }

  void check_tile(TileIndex tile) {
    bool is_whole = true, is_damaged = false;
    for (const std::string& array : facts_.arrays()) {
      const auto file = folder_.chunk(array, tile);
      if (const auto obstacle = what_blocks(file)) {
        add_obstacle(*obstacle);
        is_whole = false;
        continue;
      }
      try {
        auto stored = files_.read(array, tile);
        for (const FileDamage& damage : stored.damaged) add_damage(damage);
        is_damaged = is_damaged || !stored.damaged.empty();
        check_.unrecorded += stored.unrecorded;
        const InputRange rows = facts_.grid().rows_of(tile), columns = facts_.grid().columns_of(tile);
        is_whole = is_whole && stored.damaged.empty() && !stored.is_missing &&
                   is_complete(stored.kernels, rows.size(), columns.size());
      } catch (const DataError& error) {
        check_.unreadable.push_back(error.what());
        // A file that cannot be read is neither missing nor whole.
        is_whole = false;
        is_damaged = true;
      }
    }
    if (is_whole) {
      ++check_.whole;
    } else if (!is_damaged) {
      check_.missing.push_back(tile);
    }
  }

  void add_damage(const FileDamage& damage) {
    check_.damaged.push_back(damage.file);
    check_.reasons.push_back(damage.what);
  }

  /// Something that stands in the way of many tiles is told once.
  void add_obstacle(const std::filesystem::path& path) {
    if (obstacles_.insert(path.string()).second) check_.obstacles.push_back(path.string());
  }

  const StoreFolder& folder_;
  const StoreFacts& facts_;
  const TileRecords& records_;
  TileFiles<Scalar> files_;
  StoreCheck check_;
  std::set<std::string> obstacles_;
};

}  // namespace

StoreCheck StoredGram::check(const std::function<void(Index, Index)>& progress, std::stop_token stop) const {
  // Where the document gives another side than the files have, the files are checked with their own.
  const auto side = open_->folder.other_tile_side(open_->facts);
  const StoreFacts facts = side ? open_->facts.with_tile_side(*side) : open_->facts;
  TileRecords records(open_->folder, facts, open_->records.unrecorded_tiles());
  records.refresh();
  StoreCheck check = is_float() ? FileCheck<float>(open_->folder, facts, records).run(progress, stop)
                                : FileCheck<double>(open_->folder, facts, records).run(progress, stop);
  if (!side) return check;
  check.tile_side = *side;
  check.damaged.push_back((open_->folder.path() / "zarr.json").string());
  check.reasons.push_back(fmt::format("it says tile_side {}, but the tiles that are there have {} a side",
                                      open_->facts.grid().side(), *side));
  return check;
}

}  // namespace widelimit::store
