#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/input_file.hpp"
#include "widelimit/data/npy.hpp"

namespace widelimit::data {

/// Where an array is: a file, or an entry of an archive.
struct ArrayPlace {
  std::filesystem::path file;
  std::string entry = {};   ///< Without the ending .npy; empty: the only one.
  bool in_archive = false;  ///< An .npz or .safetensors file.
};

/// Reads "FILE.npz/NAME", with or without .npy behind it, and the same of .safetensors; all else is a file.
[[nodiscard]] ArrayPlace array_place(const std::filesystem::path& path);

/// An array in an archive: its bytes are these of the file, perhaps deflated.
struct ArchiveEntry {
  std::string name;
  std::uint64_t offset = 0;  ///< Of the local header in an .npz file, of the values in a .safetensors file.
  std::uint64_t packed = 0, size = 0;
  bool deflated = false, encrypted = false, known_method = true;
  std::uint32_t checksum = 0;
  std::optional<NpyHeader> tensor = {};  ///< Of .safetensors files, which have no header of NumPy's.
};

/// The arrays of an archive in the order of the file. DataError for files that are damaged, or none.
[[nodiscard]] std::vector<ArchiveEntry> archive_entries(const InputFile& file);

/// The bytes of an array, of a file or an entry of one. Reads of what comes next cost least.
class ArrayBytes {
 public:
  /// Errors  DataError as InputFile; an archive that is damaged, or has no array of this name, the message naming those
  ///         that it has.
  explicit ArrayBytes(const std::filesystem::path& path);
  ~ArrayBytes();

  /// That of the array, for errors.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::uint64_t size() const;
  /// What NumPy's header would say, where a .safetensors file does; else that header is among the bytes.
  [[nodiscard]] const std::optional<NpyHeader>& tensor() const { return tensor_; }
  /// As InputFile::read(); at the end of an .npz entry DataError unless its checksum is right.
  void read(std::uint64_t offset, void* destination, std::size_t count, std::string_view what);

 private:
  class EntryReader;
  std::filesystem::path path_;
  InputFile file_;
  std::unique_ptr<EntryReader> entry_;  ///< Null unless the bytes are those of an .npz entry.
  std::optional<NpyHeader> tensor_;
};

}  // namespace widelimit::data
