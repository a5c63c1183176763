#pragma once

#include <cstddef>
#include <cstdint>

namespace widelimit::store {

/// CRC-32C (Castagnoli, RFC 3720 appendix B.4), as Zarr's `crc32c` codec has it. By the processor's instruction where
/// it has one, else eight bytes at a time by tables.
[[nodiscard]] std::uint32_t crc32c(const void* bytes, std::size_t count);

/// The same sum by tables, on every machine.
[[nodiscard]] std::uint32_t crc32c_by_tables(const void* bytes, std::size_t count);

}  // namespace widelimit::store
