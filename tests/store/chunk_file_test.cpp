// Chunks on the disk: what is read is what was written, or is said not to be.
#include "store/chunk_file.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <vector>

#include "data/temporary_folder.hpp"
#include "widelimit/error.hpp"

namespace widelimit::store {
namespace {

std::vector<float> numbers(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i) + 0.5F;
  return values;
}

ChunkState read_floats(const std::filesystem::path& file, std::vector<float>& values) {
  return read_chunk(file, std::as_writable_bytes(std::span(values)));
}

TEST_CASE("chunk files: numbers and their checksum, in folders that are made") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "nngp" / "c" / "3" / "14";
  auto values = numbers(9);
  CHECK(read_floats(file, values) == ChunkState::missing);
  write_chunk(file, std::as_bytes(std::span(values)));
  CHECK(std::filesystem::file_size(file) == 9 * 4 + 4);
  std::vector<float> back(9);
  CHECK(read_floats(file, back) == ChunkState::whole);
  CHECK(back == values);
  values[3] = -1;
  write_chunk(file, std::as_bytes(std::span(values)));
  CHECK(read_floats(file, back) == ChunkState::whole);
  CHECK(back == values);
}

TEST_CASE("chunk files: every flipped bit, every shorter and every longer file is damaged") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "0";
  const auto values = numbers(3);
  write_chunk(file, std::as_bytes(std::span(values)));
  const std::string whole = read_bytes(file);
  std::vector<float> back(3);
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    folder.write("0", flipped);
    CHECK(read_floats(file, back) == ChunkState::damaged);
  }
  for (std::size_t length = 0; length < whole.size(); ++length) {
    folder.write("0", whole.substr(0, length));
    CHECK(read_floats(file, back) == ChunkState::damaged);
  }
  folder.write("0", whole + "x");
  CHECK(read_floats(file, back) == ChunkState::damaged);
  folder.write("0", whole);
  CHECK(read_floats(file, back) == ChunkState::whole);
}

TEST_CASE("chunk files: folders, devices and pipes are refused, and nothing waits for them") {
  const TemporaryFolder folder;
  std::vector<float> back(3);
  const auto check_refused = [&](const std::filesystem::path& file) {
    CHECK_THROWS_WITH_AS(
        (void)read_floats(file, back),
        (file.string() + ": cannot be read: expected a regular file, found a folder, pipe or "
                         "device")
            .c_str(),
        DataError);
  };
  check_refused(folder.path());
  check_refused("/dev/null");
  REQUIRE(mkfifo((folder.path() / "pipe").c_str(), 0600) == 0);
  check_refused(folder.path() / "pipe");
}

TEST_CASE("chunk files: what killed writers left of one is removed, and nothing else") {
  const TemporaryFolder folder;
  for (const char* name : {"1", "1.77-0.part", "1.78-3.part", "11.77-0.part", "2"}) folder.write(name, "x");
  remove_unfinished(folder.path() / "1");
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    left.push_back(entry.path().filename().string());
  std::sort(left.begin(), left.end());
  CHECK(left == std::vector<std::string>{"1", "11.77-0.part", "2"});
  remove_unfinished(folder.path() / "not" / "there");
}

}  // namespace
}  // namespace widelimit::store
