#pragma once

#include "numerics/arguments.hpp"
#include "widelimit/propagation/parameters.hpp"

/// Argument checks of this folder.
namespace widelimit::propagation {

using numerics::require_at_least;
using numerics::require_index;
using numerics::require_not_negative;
using numerics::require_positive;

/// Most blocks, tokens or layers that a real number may ask for: every quantity here costs a pass over them.
inline constexpr double largest_count = 1e7;

inline void require_strength(const char* where, const char* name, double value) {
  if (!(value >= 0 && value <= 1))
    throw ArgumentError(fmt::format("{}: {} must lie in [0, 1], got {}", where, name, value));
}

/// All that can be checked without calling the activation.
void require_ranges(const char* where, const Parameters& parameters);

}  // namespace widelimit::propagation
