#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

/// One chunk of a Zarr array as it lies on the disk: its numbers, little endian, and their CRC-32C after them.
namespace widelimit::store {

/// What a chunk's file is. Existence proves nothing: a power failure leaves torn files, and disks rot.
enum class ChunkState { whole, missing, damaged };

/// The CRC-32C of a chunk's numbers.
[[nodiscard]] std::uint32_t chunk_sum(std::span<const std::byte> numbers);

/// Reads a chunk of exactly so many bytes; those of one that is not whole are left unspecified. `sum`, where given,
/// gets their CRC-32C.
///
/// Errors  DataError for a file that is there and cannot be read.
[[nodiscard]] ChunkState read_chunk(const std::filesystem::path& file, std::span<std::byte> numbers,
                                    std::uint32_t* sum = nullptr);

/// What stands where a chunk's file or one of the three folders above it
/// belongs, and is none: a pipe, a folder, a file.
[[nodiscard]] std::optional<std::filesystem::path> what_blocks(const std::filesystem::path& file);

/// Writes a chunk, and its folders if need be; it is on the disk when this returns. An earlier one is replaced in one
/// step. No link is followed.
///
/// Errors  DataError naming the file.
void write_chunk(const std::filesystem::path& file, std::span<const std::byte> numbers);

/// Removes what processes that were killed while they wrote this chunk have left. Nobody else may be writing it.
void remove_unfinished(const std::filesystem::path& file);

}  // namespace widelimit::store
