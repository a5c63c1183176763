#include "store/store_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <map>
#include <system_error>
#include <utility>

#include "widelimit/error.hpp"
#include "widelimit/files/replacing_file.hpp"
#include "widelimit/files/writing_places.hpp"
#include "widelimit/json/read_json.hpp"

namespace widelimit::store {
namespace {

namespace fs = std::filesystem;

constexpr const char* document_name = "zarr.json";
constexpr const char* attribute_name = "widelimit";
/// A file of a tile has side^2 numbers and their checksum.
constexpr std::uintmax_t sum_bytes = sizeof(std::uint32_t);

nlohmann::json group_document(const StoreFacts& facts) {
  return {{"zarr_format", 3}, {"node_type", "group"}, {"attributes", {{attribute_name, facts.document()}}}};
}

nlohmann::json array_document(const StoreFacts& facts) {
  const TileGrid grid = facts.grid();
  // A missing chunk reads as NaN. The checksum is the last codec, so that it covers the bytes
  // as they stand in the file.
  return {
      {"zarr_format", 3},
      {"node_type", "array"},
      {"shape", {grid.rows(), grid.columns()}},
      {"data_type", facts.is_float() ? "float32" : "float64"},
      {"chunk_grid", {{"name", "regular"}, {"configuration", {{"chunk_shape", {grid.side(), grid.side()}}}}}},
      {"chunk_key_encoding", {{"name", "default"}, {"configuration", {{"separator", "/"}}}}},
      {"fill_value", "NaN"},
      {"codecs", {{{"name", "bytes"}, {"configuration", {{"endian", "little"}}}}, {{"name", "crc32c"}}}},
      {"attributes", nlohmann::json::object()}};
}

void write_document(const fs::path& file, const nlohmann::json& document) {
  files::ReplacingFile writer(file, files::Links::refused);
  writer.write(document.dump(1) + "\n");
  writer.commit_to_disk();
}

void make_folder(const fs::path& folder) {
  files::require_may_write(folder);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw DataError(fmt::format("{}: the store cannot be made: {}", folder.string(), error.message()));
  files::sync_folder(folder.parent_path());
}

/// Whether a document is there and reads as wanted; one that a power failure or a disk has spoilt does not.
bool holds_document(const fs::path& file, const nlohmann::json& wanted) {
  if (!fs::is_regular_file(file)) return false;
  try {
    return read_json(file) == wanted;
  } catch (const DataError&) {
    return false;
  }
}

/// Whether a file comes from an attempt to make a store: one that was interrupted, or another process's that goes on.
bool is_own(const std::string& name) {
  constexpr const char* arrays[] = {"nngp", "ntk", "nngp_error", "ntk_error"};
  return std::find(std::begin(arrays), std::end(arrays), name) != std::end(arrays) ||
         files::target_of_writer(name) == document_name;
}

}  // namespace

StoreFolder::StoreFolder(fs::path folder) : folder_{std::move(folder)} {
  if (folder_.empty()) throw ArgumentError("a store takes a folder, got an empty path");
  // After a slash at the end, the last component is empty.
  if (!folder_.has_filename()) folder_ = folder_.parent_path();
}

bool StoreFolder::holds_store() const { return fs::exists(folder_ / document_name); }

StoreFacts StoreFolder::facts() const {
  const fs::path file = folder_ / document_name;
  if (!holds_store()) throw DataError(fmt::format("{}: there is no store", folder_.string()));
  if (!fs::is_regular_file(file))
    throw DataError(
        fmt::format("{}: expected a regular file, found a folder, pipe or device", file.string()));
  const nlohmann::json document = read_json(file);
  const JsonValue attributes = JsonValue(document, file.string()).at("attributes");
  if (!attributes.contains(attribute_name))
    attributes.fail("expected a store of widelimit, got another Zarr group");
  return {attributes.at(attribute_name).raw(), file.string()};
}

void StoreFolder::make_folders(const StoreFacts& facts) const {
  if (fs::exists(folder_)) {
    if (!fs::is_directory(folder_))
      throw DataError(fmt::format("{}: expected a folder for the store, found a file", folder_.string()));
    for (const auto& entry : fs::directory_iterator(folder_)) {
      const std::string name = entry.path().filename().string();
      if (name != document_name && !is_own(name))
        throw DataError(
            fmt::format("{}: expected a store or an empty folder, it holds {}", folder_.string(), name));
      // Asked in this order: another process writes the document before its first tile.
      if (fs::exists(entry.path() / "c") && !holds_store())
        throw DataError(fmt::format(
            "{}: it holds tiles of {}, but {}, which says what they are of, is gone: put it back, or take "
            "another folder",
            folder_.string(), name, document_name));
    }
  }
  make_folder(folder_);
  for (const std::string& array : facts.arrays()) make_folder(folder_ / array);
}

void StoreFolder::make_missing_folders(const StoreFacts& facts) const {
  for (const std::string& array : facts.arrays()) {
    files::require_no_link(folder_ / array);
    if (!fs::is_directory(folder_ / array)) make_folder(folder_ / array);
  }
}

void StoreFolder::write_documents(const StoreFacts& facts) const {
  make_missing_folders(facts);
  // While a store grows, the group says first how large it will be: what a crash leaves undone is seen, and mended.
  const bool grows = holds_store();
  if (grows) write_document(folder_ / document_name, group_document(facts));
  for (const std::string& array : facts.arrays())
    write_document(folder_ / array / document_name, array_document(facts));
  if (!grows) write_document(folder_ / document_name, group_document(facts));
}

std::vector<std::string> StoreFolder::wrong_documents(const StoreFacts& facts) const {
  std::vector<std::string> wrong;
  for (const std::string& array : facts.arrays()) {
    if (!holds_document(folder_ / array / document_name, array_document(facts))) wrong.push_back(array);
  }
  return wrong;
}

bool StoreFolder::holds_tiles(const StoreFacts& facts) const {
  return std::ranges::all_of(facts.arrays(), [this](const std::string& array) {
    std::error_code error;
    return fs::is_directory(folder_ / array / "c", error);
  });
}

fs::path StoreFolder::document(const std::string& array) const { return folder_ / array / document_name; }

fs::path StoreFolder::chunk(const std::string& array, TileIndex tile) const {
  return folder_ / array / "c" / fmt::format("{}", tile.row) / fmt::format("{}", tile.column);
}

bool StoreFolder::is_writable(const StoreFacts& facts) const {
  // What does not exist can be made.
  const auto may_write = [](const fs::path& path) {
    return faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0 || errno == ENOENT;
  };
  return may_write(folder_ / facts.arrays().front()) && may_write(claims_file(facts));
}

fs::path StoreFolder::claims_file(const StoreFacts& facts) const {
  return folder_ / facts.arrays().front() / "claims";
}

fs::path StoreFolder::records_folder(const StoreFacts& facts) const {
  return folder_ / facts.arrays().front() / "records";
}

void StoreFolder::remove_leftovers(const StoreFacts& facts) const {
  const auto is_document = [](const std::string& target) { return target == document_name; };
  const auto is_tile = [](const std::string& target) {
    return target.find_first_not_of("0123456789") == std::string::npos;
  };
  files::remove_leftovers(folder_, is_document);
  for (const std::string& array : facts.arrays()) {
    files::remove_leftovers(folder_ / array, is_document);
    std::error_code error;
    if (fs::is_symlink(folder_ / array / "c", error)) continue;
    for (fs::directory_iterator row(folder_ / array / "c", error); !error && row != fs::directory_iterator();
         row.increment(error))
      if (!row->is_symlink(error)) files::remove_leftovers(row->path(), is_tile);
  }
}

void StoreFolder::require_there() const {
  if (!holds_store())
    throw DataError(fmt::format(
        "{}: the store was moved or removed while it was computed; what was computed until then is "
        "where it was moved to",
        folder_.string()));
}

void StoreFolder::require_tiles(const StoreFacts& facts, const std::vector<Index>& tiles) const {
  constexpr const char* advice =
      "somebody has changed the store while it was computed; run again, which computes what is missing";
  require_there();
  if (this->facts().document() != facts.document())
    throw DataError(
        fmt::format("{}: {} is of another store now: {}", folder_.string(), document_name, advice));
  if (const auto wrong = wrong_documents(facts); !wrong.empty())
    throw DataError(fmt::format("{}: it is not there, or does not say what the array is: {}",
                                document(wrong.front()).string(), advice));
  const TileGrid grid = facts.grid();
  Index wrong = 0, first = 0;
  for (const Index tile : tiles)
    if (!holds_tile(facts, grid.tile(tile)) && wrong++ == 0) first = tile;
  if (wrong > 0)
    throw DataError(fmt::format("{}: of {} tiles, {} are missing or of another size, the first ({}, {}): {}",
                                folder_.string(), tiles.size(), wrong, grid.tile(first).row,
                                grid.tile(first).column, advice));
}

bool StoreFolder::holds_tile(const StoreFacts& facts, TileIndex tile) const {
  const auto side = static_cast<std::uintmax_t>(facts.grid().side());
  const std::uintmax_t length = side * side * (facts.is_float() ? sizeof(float) : sizeof(double)) + sum_bytes;
  return std::ranges::all_of(facts.arrays(), [&](const std::string& array) {
    std::error_code error;
    const fs::path file = chunk(array, tile);
    return fs::is_regular_file(file, error) && fs::file_size(file, error) == length && !error;
  });
}

/// The side that most of some of the files have, by their lengths.
std::optional<Index> StoreFolder::other_tile_side(const StoreFacts& facts) const {
  // A large store has more files than the question is worth.
  constexpr int enough = 32;
  const std::size_t bytes = facts.is_float() ? sizeof(float) : sizeof(double);
  std::map<Index, int> votes;
  int files = 0;
  std::error_code error;
  for (const std::string& array : facts.arrays())
    for (fs::recursive_directory_iterator entry(folder_ / array / "c", error);
         !error && files < enough && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
      std::error_code unread;
      if (!entry->is_regular_file(unread) || files::target_of_writer(entry->path().filename().string()))
        continue;
      ++files;
      const std::uintmax_t length = entry->file_size(unread);
      if (unread || length <= sum_bytes || (length - sum_bytes) % bytes != 0) continue;
      const auto side = std::llround(std::sqrt(static_cast<double>((length - sum_bytes) / bytes)));
      if (static_cast<std::uintmax_t>(side * side) == (length - sum_bytes) / bytes) ++votes[side];
    }
  for (const auto& [side, count] : votes)
    // More than half of the files must agree.
    if (2 * count > files && side != facts.grid().side()) return side;
  return {};
}

}  // namespace widelimit::store
