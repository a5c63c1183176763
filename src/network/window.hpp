#pragma once

#include <string>
#include <vector>

#include "widelimit/network/shape.hpp"
#include "widelimit/network/window.hpp"

namespace widelimit {

/// A shape in words, for messages in which a single number could be mistaken for a count: "one axis of size 5", "2
/// axes of sizes 4x5", "no positions".
std::string axes_text(const Shape& shape);

/// The positions before an axis of `size` positions that the first window covers, zeros or, with circular padding,
/// the far end.
Index padding_front(Index size, Index window, Index stride, Padding padding);

/// The positions after a window along an axis; 0 or less if the window does not fit.
Index window_output_size(Index size, Index window, Index stride, Padding padding);

/// The part of an axis that a window with `begin` and `end` sees: where it begins, and its size, which is less than 1
/// if no position is left.
struct SeenPart {
  Index begin;
  Index size;
};
SeenPart seen_part(const Window& window, std::size_t axis, Index size);

/// The shape after a window. Throws ArgumentError if the axes do not match, no position is left, or the window is far
/// larger than the input.
Shape window_output_shape(const Shape& input, const Window& window);

/// Throws ArgumentError, naming `layer`, unless sizes and strides are positive and as many as each other, and
/// strides are at most 2^20.
void check_window(const std::string& layer, const Window& window);

}  // namespace widelimit
