#pragma once

#include <cstdint>

namespace widelimit::specialization {

// Far from the small seeds a user counts up: starts must not repeat the numbers of batches and samples.
inline constexpr std::uint64_t start_seed = 1'000'000'007;

}  // namespace widelimit::specialization
