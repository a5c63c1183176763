#pragma once

#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <cstdint>
#include <optional>

namespace widelimit::numerics {

/// A root in [low, high] to about the last digit (TOMS 748); nothing if the ends have the same sign or none.
template <typename Function>
std::optional<double> bracketed_root(const Function& function, double low, double high) {
  const double at_low = function(low), at_high = function(high);
  if (at_low == 0) return low;
  if (at_high == 0) return high;
  if (!(std::signbit(at_low) != std::signbit(at_high)) || std::isnan(at_low) || std::isnan(at_high))
    return std::nullopt;
  // TOMS 748 needs some ten calls; this bound only ends a search in a function that misbehaves.
  std::uintmax_t calls = 200;
  const auto bracket = boost::math::tools::toms748_solve(
      function, low, high, at_low, at_high, boost::math::tools::eps_tolerance<double>(51), calls);
  return bracket.first + (bracket.second - bracket.first) / 2;
}

}  // namespace widelimit::numerics
