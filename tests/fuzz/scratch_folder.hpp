#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "targets.hpp"

namespace widelimit::fuzz {

/// A folder for readers of folders, in memory where the system has such a place; it goes with the process.
class ScratchFolder {
 public:
  ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// A folder that is whole, of which one file at a time is replaced by any bytes.
class DamagedFolder {
 public:
  /// `make` writes the whole folder, whose path it gets.
  explicit DamagedFolder(const std::function<void(const std::filesystem::path&)>& make);

  /// The folder with the bytes in place of one of its files: the first byte chooses it, in the order of their names.
  /// The file is put back with the next call. Sizes in files of JSON are made small (bounded_json.hpp).
  const std::filesystem::path& with(Bytes bytes);

 private:
  void put_back();

  ScratchFolder scratch_;
  std::filesystem::path folder_;
  std::vector<std::filesystem::path> files_;
  std::vector<std::vector<std::uint8_t>> contents_;
  std::size_t replaced_ = 0;
};

std::vector<std::uint8_t> read_bytes(const std::filesystem::path& file);
void write_bytes(const std::filesystem::path& file, Bytes bytes);

}  // namespace widelimit::fuzz
