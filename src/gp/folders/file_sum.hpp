#pragma once

#include <fmt/format.h>
#include <zlib.h>

#include <cstddef>
#include <string>

/// Checksums (CRC-32) of files, against damage. They tell no data apart: store::Sha256 does.
namespace widelimit::gp {

/// zlib begins anew for a null pointer, which empty arrays have: nothing leaves the sum as it is.
inline uLong sum_with(uLong sum, const void* bytes, std::size_t count) {
  return count == 0 ? sum : crc32_z(sum, static_cast<const Bytef*>(bytes), count);
}

inline std::string sum_text(uLong sum) { return fmt::format("{:08x}", sum); }

}  // namespace widelimit::gp
