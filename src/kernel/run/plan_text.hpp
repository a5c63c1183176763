#pragma once

#include <string>

namespace widelimit {

/// A number with three digits and a prefix of its unit. `thousand` is 1000 or 1024.
[[nodiscard]] std::string scaled_text(double value, double thousand, const std::string& unit);

/// "15.2 ms", "3.05 h".
[[nodiscard]] std::string duration_text(double seconds);

}  // namespace widelimit
