#pragma once

#include <limits>
#include <string>

#include "support/error_message.hpp"
#include "widelimit/error.hpp"

/// What is out of range is an error that names layer, field and value.
namespace widelimit::testing {

inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// The message of the ArgumentError that a constructor throws; "no error" if it throws none.
std::string error_of(const auto& call) { return error_message<ArgumentError>(call); }

}  // namespace widelimit::testing
