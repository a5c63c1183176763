#include "store/crc32c.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace widelimit::store {
namespace {

constexpr std::uint32_t reflected_polynomial = 0x82f63b78;
constexpr std::uint32_t all_ones = 0xffffffff;

using Table = std::array<std::uint32_t, 256>;

/// Table k takes a byte that k other bytes follow.
constexpr std::array<Table, 8> make_tables() {
  std::array<Table, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) != 0 ? reflected_polynomial : 0);
    tables[0][byte] = sum;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t byte = 0; byte < 256; ++byte)
      tables[k][byte] = (tables[k - 1][byte] >> 8) ^ tables[0][tables[k - 1][byte] & 0xff];
  return tables;
}

constexpr std::array<Table, 8> tables = make_tables();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t crc32c_by_instruction(const unsigned char* bytes,
                                                                      std::size_t count) {
  std::uint64_t sum = all_ones;
  for (; count >= 8; bytes += 8, count -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, 8);
    sum = _mm_crc32_u64(sum, word);
  }
  auto rest = static_cast<std::uint32_t>(sum);
  for (; count > 0; ++bytes, --count) rest = _mm_crc32_u8(rest, *bytes);
  return rest ^ all_ones;
}
#endif

}  // namespace

std::uint32_t crc32c_by_tables(const void* bytes, std::size_t count) {
  const auto* next = static_cast<const unsigned char*>(bytes);
  std::uint32_t sum = all_ones;
  for (; count >= 8; next += 8, count -= 8) {
    std::uint32_t mixed = 0;
    // Slicing by 8: the first four bytes meet the sum so far, the others only their tables.
    for (std::size_t k = 0; k < 4; ++k) mixed ^= tables[7 - k][((sum >> (8 * k)) & 0xff) ^ next[k]];
    for (std::size_t k = 4; k < 8; ++k) mixed ^= tables[7 - k][next[k]];
    sum = mixed;
  }
  for (; count > 0; ++next, --count) sum = (sum >> 8) ^ tables[0][(sum & 0xff) ^ *next];
  return sum ^ all_ones;
}

std::uint32_t crc32c(const void* bytes, std::size_t count) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2") != 0)
    return crc32c_by_instruction(static_cast<const unsigned char*>(bytes), count);
#endif
  return crc32c_by_tables(bytes, count);
}

}  // namespace widelimit::store
