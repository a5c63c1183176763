#pragma once

#include <cstdint>

namespace widelimit::specialization {

// Far from the small seeds a user counts up: starts must not repeat the numbers of batches and samples.
inline constexpr std::uint64_t start_seed = 1'000'000'007;
// The same of the samples on which what was trained is judged.
inline constexpr std::uint64_t judge_seed = 2'000'000'011;

}  // namespace widelimit::specialization
