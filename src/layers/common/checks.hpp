#pragma once

#include <string_view>

/// Range checks shared by the layers' constructors; all throw ArgumentError("LAYER: NAME must be ..., got
/// VALUE").
namespace widelimit::layers {

void require_finite(std::string_view layer, std::string_view name, double value);
void require_not_negative(std::string_view layer, std::string_view name, double value);

}  // namespace widelimit::layers
