#pragma once

#include <cstdint>

namespace widelimit::finite {

/// A seed of its own for every (seed, number), by applying the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA
/// 2014) to both.
inline std::uint64_t mixed_seed(std::uint64_t seed, std::uint64_t number) {
  const auto mix = [](std::uint64_t bits) {
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
    return bits ^ (bits >> 31);
  };
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15ULL;
  return mix(mix(seed + golden) + golden * (number + 1));
}

}  // namespace widelimit::finite
