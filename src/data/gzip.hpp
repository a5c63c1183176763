#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace widelimit::data {

/// Whether the content begins like a gzip file; its name does not matter.
bool is_gzip(std::span<const std::uint8_t> bytes);

/// Unpacks all members of a gzip file, checksums verified. DataError naming `path` and the offset in the packed file if
/// the data are corrupt, cut short or followed by something else, or unpack to more than `most` bytes: a few kilobytes
/// can unpack to more than any memory.
std::vector<std::uint8_t> unpack_gzip(const std::filesystem::path& path, std::span<const std::uint8_t> packed,
                                      std::size_t most);

/// The first `count` bytes of the content, fewer if it has no more. Checksums are not looked at. Errors as above.
std::vector<std::uint8_t> unpack_gzip_start(const std::filesystem::path& path,
                                            std::span<const std::uint8_t> packed, std::size_t count);

}  // namespace widelimit::data
