#include "network/window.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "widelimit/error.hpp"

namespace widelimit {

std::string to_string(const Shape& shape) {
  return shape.empty() ? "no positions" : fmt::format("{}", fmt::join(shape, "x"));
}

std::string axes_text(const Shape& shape) {
  if (shape.empty()) return "no positions";
  if (shape.size() == 1) return fmt::format("one axis of size {}", shape[0]);
  return fmt::format("{} axes of sizes {}", shape.size(), to_string(shape));
}

Index window_output_size(Index size, Index window, Index stride, Padding padding) {
  if (padding == Padding::valid) return size < window ? 0 : (size - window) / stride + 1;
  // ceil(size / stride), for both paddings that keep every position.
  return (size + stride - 1) / stride;
}

Index padding_front(Index size, Index window, Index stride, Padding padding) {
  if (padding == Padding::valid) return 0;
  const Index output = window_output_size(size, window, stride, padding);
  // What the windows reach beyond the axis, halved: if it is odd, the longer half is behind.
  return std::max<Index>((output - 1) * stride + window - size, 0) / 2;
}

SeenPart seen_part(const Window& window, std::size_t axis, Index size) {
  if (window.begin.empty()) return {0, size};
  const Index begin = window.begin[axis], end = window.end[axis];
  return {begin, (end == -1 ? size : std::min(end, size)) - begin};
}

namespace {

/// The positions of the widest window that is accepted for inputs of any size.
constexpr double many_taps = 65'536;
constexpr Index longest_stride = Index{1} << 20;

/// Windows much wider than twice the input see nothing but what is beyond the border, at a cost that grows with their
/// size.
void check_taps(const Shape& input, const Window& window) {
  double taps = 1, useful = 1;
  for (std::size_t i = 0; i < input.size(); ++i) {
    taps *= static_cast<double>(window.sizes[i]);
    useful *= 2 * static_cast<double>(input[i]);
  }
  if (taps > std::max(many_taps, useful))
    throw ArgumentError(
        fmt::format("expected a window of at most {:.6g} positions for inputs of {}, got {} = {:.6g}",
                    std::max(many_taps, useful), to_string(input), to_string(window.sizes), taps));
}

}  // namespace

Shape window_output_shape(const Shape& input, const Window& window) {
  if (window.sizes.empty()) return input;
  if (input.size() != window.sizes.size())
    throw ArgumentError(fmt::format("expected inputs with {} spatial {} (one window size an axis), got {}",
                                    window.sizes.size(), window.sizes.size() == 1 ? "axis" : "axes",
                                    axes_text(input)));
  check_taps(input, window);
  Shape output(input.size());
  for (std::size_t i = 0; i < input.size(); ++i) {
    const SeenPart seen = seen_part(window, i, input[i]);
    output[i] = window_output_size(seen.size, window.sizes[i], window.strides[i], window.padding);
    if (output[i] < 1 && !window.begin.empty())
      throw ArgumentError(fmt::format("axis {}: no position is left of {}", i, input[i]));
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
  for (const Index stride : window.strides) {
    if (stride < 1) throw ArgumentError(fmt::format("{}: strides must be positive, got {}", layer, stride));
    if (stride > longest_stride)
      throw ArgumentError(
          fmt::format("{}: strides must be at most {}, got {}", layer, longest_stride, stride));
  }
}

}  // namespace widelimit
