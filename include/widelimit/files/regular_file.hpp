#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace widelimit::files {

/// A file that is open for reading, maybe a stranger's (docs/security.md): nothing but a regular file is opened, so
/// that no pipe is waited for and no device is read without end, and its size is known before a byte is read.
class RegularFile {
 public:
  /// Errors  DataError naming `path` where nothing is, where something else is than a regular file or a link to one,
  ///         and where the system refuses.
  explicit RegularFile(std::filesystem::path path);
  ~RegularFile();
  RegularFile(RegularFile&& other) noexcept;
  RegularFile& operator=(RegularFile&&) = delete;

  /// Nothing where no file has this name. Errors as above.
  [[nodiscard]] static std::optional<RegularFile> if_there(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Bytes, as it was opened.
  [[nodiscard]] std::uint64_t size() const { return size_; }

  /// Reads `count` bytes at `offset`, fewer where the file ends; returns how many. DataError naming the file.
  std::size_t read(std::uint64_t offset, void* destination, std::size_t count) const;

  /// The same, but the error is std::system_error, with its code.
  std::size_t read_raw(std::uint64_t offset, void* destination, std::size_t count) const;

 private:
  struct Closed {};
  RegularFile(std::filesystem::path path, Closed) : path_{std::move(path)} {}
  /// Returns 0 or the system's error.
  int open();
  void check(int code);

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// All bytes of a file that has no more than `most`, which is asked before any is read. `what` is what it should be
/// ("a table of trials"). DataError as RegularFile.
[[nodiscard]] std::string read_file(const std::filesystem::path& path, std::uint64_t most,
                                    std::string_view what);

/// From now on this process takes regular files only where it would take pipes and devices, too, from people who name
/// them (read_json()): its arguments come from a file, maybe a stranger's.
void refuse_pipes();
[[nodiscard]] bool pipes_are_refused();

}  // namespace widelimit::files
