#pragma once

#include <span>
#include <string>

namespace widelimit::cli {

/// A picture as the source of an <img>: a PNG of 8 bits a channel as a data URI. `values` are [height, width, channels]
/// in [0, 1] (others are clamped), channels 1 (grey) or 3 (red, green, blue).
[[nodiscard]] std::string png_data_uri(std::span<const float> values, std::size_t height, std::size_t width);

}  // namespace widelimit::cli
