#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "widelimit/error.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit::cli {

/// Most steps of a simulation: nobody waits for more, and their products with the size of a state stay within an index.
inline constexpr double most_steps = 1e9;

/// The count that an already rounded number of a user stands for: the language has no conversion beyond an index.
/// ArgumentError "WHAT: expected 0 to MOST, got VALUE" outside of that range, and for NaN.
inline Index checked_count(double value, double most, std::string_view what) {
  if (!(value >= 0 && value <= most))
    throw ArgumentError(fmt::format("{}: expected 0 to {:g}, got {:g}", what, most, value));
  return static_cast<Index>(value);
}

/// The number of points between two bounds, as a user gave it: ArgumentError "WHAT: expected a whole number from LEAST
/// to MOST, got VALUE" for everything else.
inline Index checked_points(double value, double least, double most, std::string_view what) {
  if (!(value >= least && value <= most) || value != std::floor(value))
    throw ArgumentError(
        fmt::format("{}: expected a whole number from {:g} to {:g}, got {:g}", what, least, most, value));
  return static_cast<Index>(value);
}

}  // namespace widelimit::cli
