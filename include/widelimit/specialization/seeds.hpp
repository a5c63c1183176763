#pragma once

#include <cstdint>

/// What the experiments of this folder add to the seed of a start, so that its parts draw apart from one another. The
/// numbers lie far from the small seeds that a user counts up.
namespace widelimit::specialization {

/// Of random starts, which must not repeat the numbers of batches and samples.
inline constexpr std::uint64_t start_seed = 1'000'000'007;
/// Of the samples on which what was trained is judged.
inline constexpr std::uint64_t judge_seed = 2'000'000'011;
/// Of the sequences on which the Bayes risk is estimated.
inline constexpr std::uint64_t risk_seed = 2'000'000'033;

}  // namespace widelimit::specialization
