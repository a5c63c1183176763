#pragma once

#include <Random123/philox.h>

#include <array>
#include <cstdint>

namespace widelimit::numerics {

/// Block number `block` of a stream: four random words of Philox 4x32 with 10 rounds, as RandomStream counts them.
inline r123::Philox4x32::ctr_type philox_block(const std::array<std::uint32_t, 2>& seed, std::uint64_t stream,
                                               std::uint64_t block) {
  const r123::Philox4x32::key_type key = {{seed[0], seed[1]}};
  const r123::Philox4x32::ctr_type counter = {
      {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
       static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)}};
  return r123::Philox4x32{}(counter, key);
}

}  // namespace widelimit::numerics
