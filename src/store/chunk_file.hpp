#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

/// One chunk of a Zarr array as it lies on the disk: its numbers, little endian, and their CRC-32C behind them.
namespace widelimit::store {

/// What a chunk's file is. Existence proves nothing: a power failure leaves torn files, and disks rot.
enum class ChunkState { whole, missing, damaged };

/// Reads a chunk of exactly so many bytes; those of one that is not whole are left unspecified.
///
/// Errors  DataError for a file that is there and cannot be read.
[[nodiscard]] ChunkState read_chunk(const std::filesystem::path& file, std::span<std::byte> numbers);

/// Writes a chunk, and its folders if need be; it is on the disk when this returns. An earlier one is replaced in one
/// step.
///
/// Errors  DataError naming the file.
void write_chunk(const std::filesystem::path& file, std::span<const std::byte> numbers);

/// Removes what processes that were killed while they wrote this chunk have left. Nobody else may be writing it.
void remove_unfinished(const std::filesystem::path& file);

}  // namespace widelimit::store
