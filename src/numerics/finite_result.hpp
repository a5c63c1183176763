#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "widelimit/error.hpp"

/// The check of what the theories find. It is the same for all three, so that none says a word about a number that
/// does not exist.
namespace widelimit::numerics {

/// The value. `advice` says which parameter to change.
/// Errors  NumericalError "WHERE: WHAT must be finite, but came out as VALUE: ADVICE" unless the value is.
inline double finite_result(std::string_view where, std::string_view what, double value,
                            std::string_view advice) {
  if (!std::isfinite(value))
    throw NumericalError(fmt::format("{}: {} must be finite, but came out as {}: {}", where, what,
                                     std::isnan(value) ? "nan" : fmt::format("{}", value), advice));
  return value;
}

}  // namespace widelimit::numerics
