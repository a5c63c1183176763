#pragma once

#include <fmt/format.h>

#include <Eigen/Core>
#include <string_view>

#include "widelimit/error.hpp"

namespace widelimit::numerics {

/// Most steps of a simulation. Nobody waits for more, and every product of such a count with the size of a
/// state stays within an index.
inline constexpr double most_steps = 1e9;

/// The count that an already rounded real number stands for. Every number of steps, nodes or blocks that
/// comes from real numbers of a user passes here, because the conversion of the language is undefined beyond
/// the range of an index.
///
/// Errors  ArgumentError "WHAT: expected 0 to MOST, got VALUE" outside of that range, and for NaN.
inline Eigen::Index checked_count(double value, double most, std::string_view what) {
  if (!(value >= 0 && value <= most))
    throw ArgumentError(fmt::format("{}: expected 0 to {:g}, got {:g}", what, most, value));
  return static_cast<Eigen::Index>(value);
}

}  // namespace widelimit::numerics
