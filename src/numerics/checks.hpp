#pragma once

#include <fmt/format.h>

#include <cmath>

#include "widelimit/error.hpp"

namespace widelimit::numerics {

inline void require_finite(const char* where, const char* name, double value) {
  if (!std::isfinite(value))
    throw ArgumentError(fmt::format("{}: {} must be a finite number, got {}", where, name, value));
}

inline void require_within(const char* where, const char* name, int value, int lowest, int highest) {
  if (value < lowest || value > highest)
    throw ArgumentError(
        fmt::format("{}: {} must be within {} .. {}, got {}", where, name, lowest, highest, value));
}

}  // namespace widelimit::numerics
