#pragma once

#include <string>
#include <vector>

#include "widelimit/network/shape.hpp"
#include "widelimit/network/window.hpp"

namespace widelimit {

/// A shape in a message, where a single number could be taken for a count: "one axis of size 5", "2 axes of
/// sizes 4x5", "no positions".
std::string axes_text(const Shape& shape);

/// Zeros before an axis of `size` positions under the window's padding.
Index padding_front(Index size, Index window, Index stride, Padding padding);

/// Positions after a window along an axis; 0 or less if the window does not fit.
Index window_output_size(Index size, Index window, Index stride, Padding padding);

/// Where the part of an axis that a window sees begins, and its size; less than 1 if there is none.
struct SeenPart {
  Index begin;
  Index size;
};
SeenPart seen_part(const Window& window, std::size_t axis, Index size);

/// Shape after a window. Throws ArgumentError if the axes do not match, nothing is left, or the window is
/// far larger than the input.
Shape window_output_shape(const Shape& input, const Window& window);

/// Throws ArgumentError, naming `layer`, unless sizes and strides are positive and as many as each other, and
/// strides are at most 2^20.
void check_window(const std::string& layer, const Window& window);

}  // namespace widelimit
