#include "store/tile_records.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "files/file_size_signal.hpp"
#include "widelimit/error.hpp"
#include "widelimit/files/regular_file.hpp"
#include "widelimit/files/replacing_file.hpp"
#include "widelimit/files/writing_places.hpp"

namespace widelimit::store {
namespace {

namespace fs = std::filesystem;

constexpr const char* seal_word = " seal ";

/// A record as a line tells it, whether or not it is of the store.
struct ToldRecord {
  TileRecord record;
  Index steps = 0;   ///< 0 and no seal as version 0.2 wrote it.
  std::string text;  ///< What is sealed.
  std::string seal;
};

/// Nothing for a line of another kind.
std::optional<ToldRecord> record_in(const std::string& line) {
  ToldRecord told;
  const auto end = line.rfind(seal_word);
  told.text = line.substr(0, end);
  if (end != line.npos) told.seal = line.substr(end + std::string_view(seal_word).size());
  std::istringstream words(told.text);
  TileRecord& record = told.record;
  std::string tile, pairs, seconds, word;
  if (!(words >> tile >> record.tile.row >> record.tile.column >> pairs >> record.pairs >> seconds >>
        record.seconds) ||
      tile != "tile" || pairs != "pairs" || seconds != "seconds")
    return {};
  std::uint32_t sum = 0;
  while (words >> word)
    if (word == "steps" && words >> std::dec >> told.steps)
      continue;
    else if (words >> std::hex >> sum)
      record.sums.emplace_back(word, sum);
  return told;
}

}  // namespace

std::string record_line(const TileRecord& record, const StoreSeals& seals) {
  std::string text = fmt::format("tile {} {} pairs {} seconds {:.3f} steps {}", record.tile.row,
                                 record.tile.column, record.pairs, record.seconds, seals.steps());
  for (const auto& [array, sum] : record.sums) text += fmt::format(" {} {:08x}", array, sum);
  return text + seal_word + seals.of(text, seals.steps());
}

RecordWriter::~RecordWriter() {
  if (descriptor_ >= 0) close(descriptor_);
}

void RecordWriter::add(const TileRecord& record) {
  static std::atomic<unsigned> counter{0};
  if (descriptor_ < 0) {
    files::require_may_write(folder_);
    files::require_no_link(folder_);
    std::error_code error;
    fs::create_directories(folder_, error);
    file_ = folder_ / fmt::format("{}-{}.txt", files::this_process().text(), counter++);
    descriptor_ = open(file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail(errno);
    files::sync_folder(folder_);
  }
  const files::FileSizeSignalBlock block;
  const std::string line = record_line(record, seals_) + "\n";
  const ssize_t written = write(descriptor_, line.data(), line.size());
  if (written < 0) fail(errno);
  // A disk that is full cuts lines short.
  if (written != static_cast<ssize_t>(line.size())) fail(ENOSPC);
  if (fdatasync(descriptor_) != 0) fail(errno);
}

void RecordWriter::fail(int code) const {
  throw DataError(fmt::format("{}: cannot be written: failed to write: {}", file_.string(),
                              std::generic_category().message(code)));
}

void TileRecords::refresh() {
  const std::scoped_lock lock(mutex_);
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(records_folder_, error))
    if (entry.path().extension() == ".txt") read(entry.path(), journals_[entry.path()]);
}

void TileRecords::require_again(const TileGrid& grid, const std::vector<Index>& tiles) {
  {
    const std::scoped_lock lock(mutex_);
    journals_.clear();
    sums_.clear();
    tiles_by_sum_.clear();
    histories_.clear();
    strange_lines_ = 0;
  }
  refresh();
  for (const Index tile : tiles)
    if (const TileIndex index = grid.tile(tile); history_of(index).times == 0)
      throw DataError(fmt::format(
          "{}: the record of tile ({}, {}) has gone while the store was computed, so that nothing says that "
          "its numbers are its own; compute the store anew in another folder",
          folder_.path().string(), index.row, index.column));
}

void TileRecords::read(const fs::path& file, Journal& journal) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return;
  // The size is that of the open file: only then do file systems of networks ask their server.
  const auto records = files::RegularFile::if_there(file);
  if (!records || records->size() <= journal.bytes_read) return;
  std::vector<char> block(std::size_t{1} << 16);
  while (journal.bytes_read < records->size()) {
    const std::size_t count = records->read(journal.bytes_read, block.data(), block.size());
    const std::string_view lines(block.data(), count);
    const std::size_t end = lines.rfind('\n');
    if (end != lines.npos) {
      read_lines(lines.substr(0, end + 1), journal);
      journal.bytes_read += end + 1;
    } else if (count < block.size()) {
      break;  // A line without an end is still being written, or was never finished.
    } else {
      // No record is as long as this.
      ++strange_lines_;
      journal.bytes_read = records->size();
    }
  }
  journal.changed_at = fs::last_write_time(file, error);
}

void TileRecords::read_lines(std::string_view lines, Journal& journal) {
  for (std::size_t end = lines.find('\n'); end != lines.npos; end = lines.find('\n')) {
    read_line(std::string(lines.substr(0, end)), journal);
    lines.remove_prefix(end + 1);
  }
}

void TileRecords::read_line(const std::string& line, Journal& journal) {
  const auto told = record_in(line);
  if (told && is_of_store(told->text, told->steps, told->seal)) return note(told->record, journal);
  ++strange_lines_;
  if (!told) return;
  // Who has told something of a tile is not believed, but nor is the tile one of which nothing was told.
  for (const auto& [array, sum] : told->record.sums)
    sums_[array].try_emplace({told->record.tile.row, told->record.tile.column});
}

bool TileRecords::is_of_store(const std::string& text, Index steps, const std::string& seal) {
  if (steps == 0 && seal.empty()) return seals_.takes_unsealed();
  if (steps > seals_.steps()) {
    // Rows may have joined since the store was opened.
    const StoreSeals grown(folder_.facts());
    if (grown.continue_those_of(seals_)) seals_ = grown;
  }
  return steps >= 1 && steps <= seals_.steps() && seal == seals_.of(text, steps);
}

void TileRecords::note(const TileRecord& record, Journal& journal) {
  // The pace of a process is that of its last tiles; what it took for no time it has found.
  constexpr std::size_t looked_at = 16;
  if (record.seconds > 0) {
    if (journal.last.size() == looked_at) journal.last.erase(journal.last.begin());
    journal.last.push_back({record.tile, record.pairs, record.seconds, {}});
  }
  TileHistory& history = histories_[{record.tile.row, record.tile.column}];
  ++history.times;
  history.pairs = std::max(history.pairs, record.pairs);
  for (const auto& [array, sum] : record.sums) {
    tiles_by_sum_[array].emplace(sum, record.tile);
    auto& sums = sums_[array][{record.tile.row, record.tile.column}];
    if (std::find(sums.begin(), sums.end(), sum) == sums.end()) sums.push_back(sum);
  }
}

bool TileRecords::are_there() const {
  const std::scoped_lock lock(mutex_);
  return !histories_.empty();
}

Index TileRecords::strange_lines() const {
  const std::scoped_lock lock(mutex_);
  return strange_lines_;
}

TileRecords::TileHistory TileRecords::history_of(TileIndex tile) const {
  const std::scoped_lock lock(mutex_);
  const auto known = histories_.find({tile.row, tile.column});
  return known == histories_.end() ? TileHistory{} : known->second;
}

std::vector<TileRecords::ProcessPace> TileRecords::paces() const {
  const std::scoped_lock lock(mutex_);
  std::vector<ProcessPace> paces;
  for (const auto& [file, journal] : journals_) {
    const std::string name = file.stem().string();  // IDENTITY-NUMBER
    const auto process = files::ProcessIdentity::parse(name.substr(0, name.rfind('-')));
    double pairs = 0, seconds = 0;
    for (const TileRecord& record : journal.last) {
      pairs += static_cast<double>(record.pairs);
      seconds += record.seconds;
    }
    if (!process || pairs == 0 || !(seconds > 0)) continue;
    const auto tiles = static_cast<double>(journal.last.size());
    const std::chrono::duration<double> since = fs::file_time_type::clock::now() - journal.changed_at;
    paces.push_back(
        {*process, pairs / seconds, pairs / tiles, seconds / tiles, std::max(0.0, since.count())});
  }
  return paces;
}

TileRecords::Place TileRecords::known_place(const std::string& array, TileIndex tile,
                                            std::uint32_t sum) const {
  const std::scoped_lock lock(mutex_);
  if (const auto of_array = sums_.find(array); of_array != sums_.end()) {
    const auto of_tile = of_array->second.find({tile.row, tile.column});
    if (of_tile != of_array->second.end())
      return std::find(of_tile->second.begin(), of_tile->second.end(), sum) != of_tile->second.end()
                 ? Place::right
                 : Place::wrong;
  }
  return known_place_with(array, sum) ? Place::wrong : Place::unrecorded;
}

TileRecords::Place TileRecords::place_of(const std::string& array, TileIndex tile, std::uint32_t sum) {
  const Place known = known_place(array, tile, sum);
  if (known == Place::right) return known;
  // Another process may have written the tile since the records were read.
  refresh();
  return known_place(array, tile, sum);
}

std::optional<TileRecords::ArrayTile> TileRecords::known_place_with(const std::string& array,
                                                                    std::uint32_t sum) const {
  std::optional<ArrayTile> found;
  for (const auto& [name, tiles] : tiles_by_sum_)
    if (const auto tile = tiles.find(sum); tile != tiles.end() && (!found || name == array))
      found = ArrayTile{name, tile->second};
  return found;
}

std::optional<TileRecords::ArrayTile> TileRecords::place_with(const std::string& array,
                                                              std::uint32_t sum) const {
  const std::scoped_lock lock(mutex_);
  return known_place_with(array, sum);
}

}  // namespace widelimit::store
