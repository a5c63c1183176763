#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "widelimit/error.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit::cli {

/// The number of points between two bounds, as a user gave it: ArgumentError "WHAT: expected a whole number from LEAST
/// to MOST, got VALUE" for everything else.
inline Index checked_points(double value, double least, double most, std::string_view what) {
  if (!(value >= least && value <= most) || value != std::floor(value))
    throw ArgumentError(
        fmt::format("{}: expected a whole number from {:g} to {:g}, got {:g}", what, least, most, value));
  return static_cast<Index>(value);
}

}  // namespace widelimit::cli
