#pragma once

#include <bit>
#include <cstdint>

namespace widelimit::testing {

/// Another number: data in which it takes the place of `number` have the same CRC-32. Differs in the upper half of the
/// mantissa. The generator of the code, bits in the order of the sum, leaves the sum as it is wherever it is added.
inline double of_equal_crc32(double number) {
  constexpr std::uint64_t generator = 0x1db710641;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(number) ^ generator << 19);
}

}  // namespace widelimit::testing
