#include "network/window.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "widelimit/error.hpp"

namespace widelimit {

std::string to_string(const Shape& shape) {
  return shape.empty() ? "no positions" : fmt::format("{}", fmt::join(shape, "x"));
}

Index window_output_size(Index size, Index window, Index stride, Padding padding) {
  if (padding == Padding::valid) return size < window ? 0 : (size - window) / stride + 1;
  return (size + stride - 1) / stride;
}

Index padding_front(Index size, Index window, Index stride, Padding padding) {
  if (padding == Padding::valid) return 0;
  const Index output = window_output_size(size, window, stride, padding);
  return std::max<Index>((output - 1) * stride + window - size, 0) / 2;
}

Shape window_output_shape(const Shape& input, const Window& window) {
  if (window.sizes.empty()) return input;
  if (input.size() != window.sizes.size())
    throw ArgumentError(fmt::format("expected inputs with {} spatial axes (one window size an axis), got {}",
                                    window.sizes.size(), to_string(input)));
  Shape output(input.size());
  for (std::size_t i = 0; i < input.size(); ++i) {
    output[i] = window_output_size(input[i], window.sizes[i], window.strides[i], window.padding);
    if (output[i] < 1)
      throw ArgumentError(fmt::format("expected at least {} positions along axis {} for the window, got {}",
                                      window.sizes[i], i, input[i]));
  }
  return output;
}

void check_window(const std::string& layer, const Window& window) {
  if (window.sizes.empty() || window.sizes.size() > 3)
    throw ArgumentError(
        fmt::format("{}: expected a window with 1, 2 or 3 axes, got {}", layer, window.sizes.size()));
  if (window.strides.size() != window.sizes.size())
    throw ArgumentError(fmt::format("{}: expected one stride an axis ({}), got {}", layer,
                                    window.sizes.size(), window.strides.size()));
  for (const Index size : window.sizes)
    if (size < 1) throw ArgumentError(fmt::format("{}: window sizes must be positive, got {}", layer, size));
  for (const Index stride : window.strides)
    if (stride < 1) throw ArgumentError(fmt::format("{}: strides must be positive, got {}", layer, stride));
}

}  // namespace widelimit
