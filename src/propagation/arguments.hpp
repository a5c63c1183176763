#pragma once

#include <fmt/format.h>

#include <cmath>

#include "widelimit/error.hpp"
#include "widelimit/propagation/parameters.hpp"

/// Argument checks shared by the functions of this folder.
namespace widelimit::propagation {

/// Most blocks, tokens or layers that a real number may ask for: every quantity here costs a pass over them.
inline constexpr double largest_count = 1e7;

inline void require_strength(const char* where, const char* name, double value) {
  if (!(value >= 0 && value <= 1))
    throw ArgumentError(fmt::format("{}: {} must lie in [0, 1], got {}", where, name, value));
}

inline void require_gain(const char* where, const char* name, double value) {
  if (!(value >= 0) || !std::isfinite(value))
    throw ArgumentError(fmt::format("{}: {} must be at least 0 and finite, got {}", where, name, value));
}

inline void require_positive(const char* where, const char* name, double value) {
  if (!(value > 0) || !std::isfinite(value))
    throw ArgumentError(fmt::format("{}: {} must be positive and finite, got {}", where, name, value));
}

inline void require_at_least(const char* where, const char* name, double value, double least) {
  if (!(value >= least) || !std::isfinite(value))
    throw ArgumentError(fmt::format("{}: {} must be at least {}, got {}", where, name, least, value));
}

inline void require_index(const char* where, const char* name, Index value, Index size) {
  if (value < 0 || value >= size)
    throw ArgumentError(fmt::format("{}: {} must lie in [0, {}), got {}", where, name, size, value));
}

/// All that can be checked without calling the activation.
void require_ranges(const char* where, const Parameters& parameters);

}  // namespace widelimit::propagation
