#include "store/tile_records.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "files/file_size_signal.hpp"
#include "widelimit/error.hpp"
#include "widelimit/files/replacing_file.hpp"

namespace widelimit::store {
namespace {

namespace fs = std::filesystem;

std::string line_of(const TileRecord& record) {
  std::string line = fmt::format("tile {} {} pairs {} seconds {:.3f}", record.tile.row, record.tile.column,
                                 record.pairs, record.seconds);
  for (const auto& [array, sum] : record.sums) line += fmt::format(" {} {:08x}", array, sum);
  return line + "\n";
}

/// Nothing for a line that is not whole, or none of this kind.
std::optional<TileRecord> record_in(const std::string& line) {
  std::istringstream words(line);
  TileRecord record;
  std::string tile, pairs, seconds;
  if (!(words >> tile >> record.tile.row >> record.tile.column >> pairs >> record.pairs >> seconds >>
        record.seconds) ||
      tile != "tile" || pairs != "pairs" || seconds != "seconds")
    return {};
  std::string array;
  std::uint32_t sum = 0;
  words >> std::hex;
  while (words >> array >> sum) record.sums.emplace_back(array, sum);
  return record;
}

}  // namespace

RecordWriter::~RecordWriter() {
  if (descriptor_ >= 0) close(descriptor_);
}

void RecordWriter::add(const TileRecord& record) {
  static std::atomic<unsigned> counter{0};
  if (descriptor_ < 0) {
    std::error_code error;
    fs::create_directories(folder_, error);
    file_ = folder_ / fmt::format("{}-{}.txt", files::this_process().text(), counter++);
    descriptor_ = open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail(errno);
    files::sync_folder(folder_);
  }
  const files::FileSizeSignalBlock block;
  const std::string line = line_of(record);
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
  for (const auto& entry : fs::directory_iterator(folder_, error))
    if (entry.path().extension() == ".txt") read(entry.path(), journals_[entry.path()]);
}

void TileRecords::read(const fs::path& file, Journal& journal) {
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(file, error);
  if (error || bytes <= journal.bytes_read) return;
  std::ifstream stream(file, std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(journal.bytes_read));
  // A line without an end is still being written, or was never finished.
  for (std::string line; std::getline(stream, line) && !stream.eof(); journal.bytes_read += line.size() + 1)
    if (const auto record = record_in(line)) note(*record, journal);
  journal.changed_at = fs::last_write_time(file, error);
}

void TileRecords::note(const TileRecord& record, Journal& journal) {
  // The pace of a process is that of its last tiles.
  constexpr std::size_t looked_at = 16;
  if (journal.last.size() == looked_at) journal.last.erase(journal.last.begin());
  journal.last.push_back({record.tile, record.pairs, record.seconds, {}});
  TileHistory& history = histories_[{record.tile.row, record.tile.column}];
  ++history.times;
  history.pairs = std::max(history.pairs, record.pairs);
  for (const auto& [array, sum] : record.sums) {
    tiles_by_sum_[array].emplace(sum, record.tile);
    auto& sums = sums_[array][{record.tile.row, record.tile.column}];
    if (std::find(sums.begin(), sums.end(), sum) == sums.end()) sums.push_back(sum);
  }
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
  const auto of_array = sums_.find(array);
  if (of_array == sums_.end()) return Place::unknown;
  const auto of_tile = of_array->second.find({tile.row, tile.column});
  if (of_tile != of_array->second.end() &&
      std::find(of_tile->second.begin(), of_tile->second.end(), sum) != of_tile->second.end())
    return Place::right;
  return tiles_by_sum_.at(array).contains(sum) ? Place::wrong : Place::unknown;
}

TileRecords::Place TileRecords::place_of(const std::string& array, TileIndex tile, std::uint32_t sum) {
  // Another process may have written the tile again since the records were read.
  if (known_place(array, tile, sum) == Place::wrong) refresh();
  return known_place(array, tile, sum);
}

std::optional<TileIndex> TileRecords::tile_with(const std::string& array, std::uint32_t sum) const {
  const std::scoped_lock lock(mutex_);
  const auto of_array = tiles_by_sum_.find(array);
  if (of_array == tiles_by_sum_.end()) return {};
  const auto tile = of_array->second.find(sum);
  return tile == of_array->second.end() ? std::nullopt : std::optional(tile->second);
}

}  // namespace widelimit::store
