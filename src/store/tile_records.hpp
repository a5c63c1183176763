#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "files/process_identity.hpp"
#include "store/store_facts.hpp"
#include "store/store_folder.hpp"
#include "widelimit/store/tile_grid.hpp"

namespace widelimit::store {

/// What a process writes down of a tile just before it puts it in its place.
struct TileRecord {
  TileIndex tile{};
  Index pairs = 0;     ///< Pairs that were computed.
  double seconds = 0;  ///< The time that they took, or the time from the tile before to this one.
  std::vector<std::pair<std::string, std::uint32_t>> sums;  ///< Array, CRC-32C of the numbers of its chunk.
};

/// The records of one process, a file of one line each, ARRAY/records/IDENTITY-NUMBER.txt:
///
///     tile 3 17 pairs 1048576 seconds 12.25 nngp 9a8b7c6d ntk 01234567
class RecordWriter {
 public:
  explicit RecordWriter(std::filesystem::path folder) : folder_{std::move(folder)} {}
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  /// Returns when it is on the disk. Throws DataError.
  void add(const TileRecord& record);

 private:
  [[noreturn]] void fail(int code) const;

  std::filesystem::path folder_;
  std::filesystem::path file_;  ///< Empty before the first record.
  int descriptor_ = -1;
};

/// The records of all processes.
class TileRecords {
 public:
  explicit TileRecords(std::filesystem::path folder) : folder_{std::move(folder)} {}

  /// Reads what was added since the last time.
  void refresh();

  enum class Place { right, wrong, unknown };
  /// Whether numbers with this CRC-32C are of this tile; wrong if they were written down of another one. Unknown where
  /// nobody has written them down, as in stores of version 0.1. Several threads may ask.
  [[nodiscard]] Place place_of(const std::string& array, TileIndex tile, std::uint32_t sum);
  /// A tile that has this CRC-32C.
  [[nodiscard]] std::optional<TileIndex> tile_with(const std::string& array, std::uint32_t sum) const;

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
  void note(const TileRecord& record, Journal& journal);
  [[nodiscard]] Place known_place(const std::string& array, TileIndex tile, std::uint32_t sum) const;

  std::filesystem::path folder_;
  mutable std::mutex mutex_;
  std::map<std::filesystem::path, Journal> journals_;
  /// Of each array, the sums of a tile (row, column): a tile is written again when rows join.
  std::map<std::string, std::map<std::pair<Index, Index>, std::vector<std::uint32_t>>> sums_;
  std::map<std::string, std::unordered_map<std::uint32_t, TileIndex>> tiles_by_sum_;
  std::map<std::pair<Index, Index>, TileHistory> histories_;
};

}  // namespace widelimit::store
