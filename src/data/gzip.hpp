#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/input_file.hpp"

namespace widelimit::data {

/// Whether the content begins like a gzip file; its name does not matter.
bool is_gzip(std::span<const std::uint8_t> bytes);

/// Unpacks a gzip file piece by piece, checksums verified, so that whoever reads decides when it is enough: a few
/// kilobytes can unpack to more than any memory. The contents of several members one after another belong together.
/// The file must outlive the reader.
class GzipReader {
 public:
  explicit GzipReader(const InputFile& file);
  ~GzipReader();

  /// Fills `destination` with the bytes that come next, fewer at the end; returns how many.
  /// Errors  DataError naming the file and the offset in the packed file if the data are corrupt, cut short or followed
  ///         by something else.
  std::size_t read(std::span<std::uint8_t> destination);

  /// How far the packed file was read.
  [[nodiscard]] std::uint64_t packed_offset() const;

 private:
  class Inflater;
  std::unique_ptr<Inflater> inflater_;
};

/// The whole content. Errors as above; DataError if it has more than `most` bytes.
std::vector<std::uint8_t> unpack_gzip(const InputFile& file, std::size_t most);

/// The first `count` bytes of the content, fewer if it has no more. Checksums are not looked at. Errors as above.
std::vector<std::uint8_t> unpack_gzip_start(const InputFile& file, std::size_t count);

}  // namespace widelimit::data
