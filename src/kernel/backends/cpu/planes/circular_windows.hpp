#pragma once

#include "kernel/plan/geometry.hpp"

/// Windows that go around the border of an input.
namespace widelimit {

/// The position that a tap reads in the window of a position, around the borders. `front` is how far the window
/// begins before the position, `size` that of the input. C++ remainders of negative numbers are negative, hence the
/// second one.
[[nodiscard]] inline Index3 wrapped_position(const Window3& window, const Index3& position, const Index3& tap,
                                             const Index3& front, const Index3& size) {
  Index3 result;
  for (std::size_t k = 0; k < 3; ++k)
    result[k] = ((window.stride[k] * position[k] + tap[k] - front[k]) % size[k] + size[k]) % size[k];
  return result;
}

/// Calls body(tap) for every tap of a window.
template <typename Body>
void for_each_tap(const Window3& window, const Body& body) {
  for (Index i = 0; i < window.size[0]; ++i)
    for (Index j = 0; j < window.size[1]; ++j)
      for (Index k = 0; k < window.size[2]; ++k) body(Index3{i, j, k});
}

}  // namespace widelimit
