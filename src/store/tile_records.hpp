#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "files/process_identity.hpp"
#include "store/store_facts.hpp"
#include "store/store_folder.hpp"
#include "store/store_seals.hpp"
#include "widelimit/store/gram_store.hpp"
#include "widelimit/store/tile_grid.hpp"

namespace widelimit::store {

/// What a process writes down of a tile just before it puts it in its place.
struct TileRecord {
  TileIndex tile{};
  Index pairs = 0;     ///< Pairs that were computed.
  double seconds = 0;  ///< The time that they took, or the time from the tile before to this one.
  std::vector<std::pair<std::string, std::uint32_t>> sums;  ///< Array, CRC-32C of the numbers of its chunk.
};

/// A record as it stands in a file, without the end of the line:
///
///     tile 3 17 pairs 1048576 seconds 12.25 steps 1 nngp 9a8b7c6d ntk 01234567 seal 00112233445566778899aabbccddeeff
///
/// Version 0.2 wrote neither steps nor a seal.
[[nodiscard]] std::string record_line(const TileRecord& record, const StoreSeals& seals);

/// The records of one process, a file of one line each, ARRAY/records/IDENTITY-NUMBER.txt.
class RecordWriter {
 public:
  RecordWriter(std::filesystem::path folder, StoreSeals seals)
      : folder_{std::move(folder)}, seals_{std::move(seals)} {}
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  /// Returns when it is on the disk. Throws DataError.
  void add(const TileRecord& record);

 private:
  [[noreturn]] void fail(int code) const;

  std::filesystem::path folder_;
  StoreSeals seals_;
  std::filesystem::path file_;  ///< Empty before the first record.
  int descriptor_ = -1;
};

/// The records of all processes. Lines that are not of this store count for nothing. Several threads may ask.
class TileRecords {
 public:
  /// The folder must outlive it.
  TileRecords(const StoreFolder& folder, const StoreFacts& facts,
              UnrecordedTiles unrecorded = UnrecordedTiles::refused)
      : folder_{folder},
        records_folder_{folder.records_folder(facts)},
        unrecorded_{unrecorded},
        seals_(facts) {}

  /// Reads what was added since the last time.
  void refresh();
  /// Reads everything again, as what was read before may be gone. DataError unless there is a record of each of these
  /// tiles: without one the next run refuses a tile, as numbers of anybody.
  void require_again(const TileGrid& grid, const std::vector<Index>& tiles);

  /// What is to become of tiles without a record.
  [[nodiscard]] UnrecordedTiles unrecorded_tiles() const { return unrecorded_; }

  enum class Place {
    right,
    wrong,  ///< Something is written down of this tile, or of these numbers, and not that they belong together.
    unrecorded  ///< Nothing is.
  };
  /// Whether numbers with this CRC-32C are of this tile.
  [[nodiscard]] Place place_of(const std::string& array, TileIndex tile, std::uint32_t sum);

  struct ArrayTile {
    std::string array;
    TileIndex tile;
  };
  /// A tile that has this CRC-32C, of this array if there is one.
  [[nodiscard]] std::optional<ArrayTile> place_with(const std::string& array, std::uint32_t sum) const;

  /// Whether there is a record of this store.
  [[nodiscard]] bool are_there() const;
  /// Lines that are none: changed, cut short or of another store.
  [[nodiscard]] Index strange_lines() const;

  /// What is written down of one tile.
  struct TileHistory {
    Index times = 0;  ///< How often it was computed.
    Index pairs = 0;  ///< Most pairs at once: fewer than it has if rows have joined since.
  };
  [[nodiscard]] TileHistory history_of(TileIndex tile) const;

  /// How fast one process computes, by its last tiles.
  struct ProcessPace {
    files::ProcessIdentity process;
    double pairs_per_second;
    double pairs_a_tile;
    double seconds_a_tile;
    double seconds_since;  ///< Time since its last record.
  };
  [[nodiscard]] std::vector<ProcessPace> paces() const;

 private:
  struct Journal {
    std::uintmax_t bytes_read = 0;
    std::filesystem::file_time_type changed_at = {};
    std::vector<TileRecord> last;  ///< The last records, without sums.
  };
  void read(const std::filesystem::path& file, Journal& journal);
  void read_lines(std::string_view lines, Journal& journal);
  void read_line(const std::string& line, Journal& journal);
  [[nodiscard]] bool is_of_store(const std::string& text, Index steps, const std::string& seal);
  void note(const TileRecord& record, Journal& journal);
  [[nodiscard]] Place known_place(const std::string& array, TileIndex tile, std::uint32_t sum) const;
  [[nodiscard]] std::optional<ArrayTile> known_place_with(const std::string& array, std::uint32_t sum) const;

  const StoreFolder& folder_;
  std::filesystem::path records_folder_;
  UnrecordedTiles unrecorded_;
  StoreSeals seals_;
  mutable std::mutex mutex_;
  std::map<std::filesystem::path, Journal> journals_;
  /// Of each array, the sums of a tile (row, column): a tile is written again when rows join. None of a tile of which
  /// only strange lines tell.
  std::map<std::string, std::map<std::pair<Index, Index>, std::vector<std::uint32_t>>> sums_;
  std::map<std::string, std::unordered_map<std::uint32_t, TileIndex>> tiles_by_sum_;
  std::map<std::pair<Index, Index>, TileHistory> histories_;
  Index strange_lines_ = 0;
};

}  // namespace widelimit::store
