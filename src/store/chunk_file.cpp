#include "store/chunk_file.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>

#include "store/crc32c.hpp"
#include "widelimit/error.hpp"
#include "widelimit/files/regular_file.hpp"
#include "widelimit/files/replacing_file.hpp"
#include "widelimit/files/writing_places.hpp"

namespace widelimit::store {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "chunks are little endian");

using ChunkSum = std::array<std::byte, sizeof(std::uint32_t)>;

/// A chunk lies three folders deep: array, "c" and its row.
constexpr int chunk_depth = 3;

/// Throws where the way to a chunk leaves its store.
void require_no_links_to(const fs::path& file) {
  fs::path path = file;
  for (int above = 0; above <= chunk_depth; ++above, path = path.parent_path()) files::require_no_link(path);
}

/// Makes the folders that are missing, each of which is on the disk before something is put into it.
void make_folders(const fs::path& folder) {
  std::error_code error;
  if (folder.empty()) return;
  // Asked once: another process may make the folder between two questions.
  const fs::file_status found = fs::status(folder, error);
  if (fs::is_directory(found)) return;
  if (fs::exists(found))
    throw DataError(fmt::format(
        "{}: expected a folder of the store, found a file, pipe or device: remove it, and run again",
        folder.string()));
  files::require_may_write(folder);
  make_folders(folder.parent_path());
  fs::create_directory(folder, error);
  if (error)
    throw DataError(fmt::format("{}: the folder cannot be made: {}", folder.string(), error.message()));
  files::sync_folder(folder.parent_path());
}

}  // namespace

std::uint32_t chunk_sum(std::span<const std::byte> numbers) { return crc32c(numbers.data(), numbers.size()); }

std::optional<fs::path> what_blocks(const fs::path& file) {
  std::error_code error;
  fs::path folder = file.parent_path();
  for (int above = 0; above < chunk_depth; ++above, folder = folder.parent_path())
    if (fs::exists(folder, error) && !fs::is_directory(folder, error)) return folder;
  // A link is followed, so that one that leads nowhere is an obstacle, and one to a file is not.
  if (fs::exists(fs::symlink_status(file, error)) && !fs::is_regular_file(file, error)) return file;
  return {};
}

ChunkState read_chunk(const fs::path& file, std::span<std::byte> numbers, std::uint32_t* sum_of_numbers) {
  const auto chunk = files::RegularFile::if_there(file);
  if (!chunk) return ChunkState::missing;
  ChunkSum sum{};
  if (chunk->size() != numbers.size() + sum.size()) return ChunkState::damaged;
  std::size_t found = 0;
  try {
    for (const std::span<std::byte> part : {numbers, std::span<std::byte>(sum)})
      found += chunk->read_raw(found, part.data(), part.size());
  } catch (const std::system_error& error) {
    // A sector that the disk cannot read any more is as good as a wrong one.
    if (error.code().value() == EIO) return ChunkState::damaged;
    throw DataError(fmt::format("{}: cannot be read: {}", file.string(), error.code().message()));
  }
  if (found != numbers.size() + sum.size()) return ChunkState::damaged;
  const std::uint32_t found_sum = chunk_sum(numbers);
  if (sum_of_numbers != nullptr) *sum_of_numbers = found_sum;
  return std::bit_cast<std::uint32_t>(sum) == found_sum ? ChunkState::whole : ChunkState::damaged;
}

void write_chunk(const fs::path& file, std::span<const std::byte> numbers) {
  require_no_links_to(file);
  make_folders(file.parent_path());
  files::ReplacingFile chunk(file, files::Links::refused);
  const auto sum = std::bit_cast<ChunkSum>(chunk_sum(numbers));
  chunk.write(numbers.data(), numbers.size());
  chunk.write(sum.data(), sum.size());
  chunk.commit_to_disk();
}

void remove_unfinished(const fs::path& file) {
  require_no_links_to(file);
  // ReplacingFile writes to a temporary file beside the chunk: its name, more, and ".part".
  const std::string beginning = file.filename().string() + ".";
  std::error_code error;
  for (fs::directory_iterator entry(file.parent_path(), error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(beginning) || !name.ends_with(".part")) continue;
    std::error_code ignored;
    fs::remove(entry->path(), ignored);
  }
}

}  // namespace widelimit::store
