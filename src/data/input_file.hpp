#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

namespace widelimit::data {

/// Throws DataError "FILE: offset N: expected ..., found ...".
[[noreturn]] void fail_at(const std::filesystem::path& path, std::uint64_t offset, std::string_view expected,
                          std::string_view found);

/// A binary file open for reading. Every failure is a DataError that names the file.
class InputFile {
 public:
  /// Errors  DataError if `path` is missing, no regular file or cannot be opened.
  explicit InputFile(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }

  /// Reads exactly `count` bytes at `offset`; `what` names them in the error if the file ends before.
  void read(std::uint64_t offset, void* destination, std::size_t count, std::string_view what);

  std::vector<std::uint8_t> read_all();

 private:
  std::filesystem::path path_;
  std::ifstream stream_;
  std::uint64_t size_ = 0;
};

}  // namespace widelimit::data
