#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "widelimit/files/regular_file.hpp"

namespace widelimit::data {

/// Throws DataError "FILE: offset N: expected ..., found ...".
[[noreturn]] void fail_at(const std::filesystem::path& path, std::uint64_t offset, std::string_view expected,
                          std::string_view found);

/// A binary file open for reading, of which as much must be there as is asked for. Every failure is a DataError that
/// names the file.
class InputFile {
 public:
  /// Errors  DataError if `path` is missing, no regular file or cannot be opened.
  explicit InputFile(std::filesystem::path path) : file_(std::move(path)) {}

  const std::filesystem::path& path() const { return file_.path(); }
  std::uint64_t size() const { return file_.size(); }

  /// Reads exactly `count` bytes at `offset`; `what` names them in the error if the file ends before.
  void read(std::uint64_t offset, void* destination, std::size_t count, std::string_view what) const;

  /// ArgumentError where there is no memory for it.
  std::vector<std::uint8_t> read_all() const;

 private:
  files::RegularFile file_;
};

}  // namespace widelimit::data
