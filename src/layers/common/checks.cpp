#include "layers/common/checks.hpp"

#include <fmt/format.h>

#include <cmath>

#include "widelimit/error.hpp"

namespace widelimit::layers {

void require_finite(std::string_view layer, std::string_view name, double value) {
  if (!std::isfinite(value))
    throw ArgumentError(fmt::format("{}: {} must be finite, got {}", layer, name, value));
}

void require_not_negative(std::string_view layer, std::string_view name, double value) {
  if (!std::isfinite(value) || value < 0)
    throw ArgumentError(fmt::format("{}: {} must be finite and not negative, got {}", layer, name, value));
}

}  // namespace widelimit::layers
