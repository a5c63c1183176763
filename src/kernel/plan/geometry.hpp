#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "widelimit/network/shape.hpp"
#include "widelimit/network/window.hpp"

/// Positions, windows and offsets of a pair of inputs (docs/engine.md). Everything here has three axes;
/// leading axes of size 1 stand for the ones that are not there.
namespace widelimit {

using Index3 = std::array<Index, 3>;

[[nodiscard]] Index3 three_axes(const Shape& shape);
[[nodiscard]] Index product(const Index3& sizes);

/// Where a position stands among all, the last axis fastest.
[[nodiscard]] inline Index position_number(const Index3& position, const Index3& sizes) {
  return (position[0] * sizes[1] + position[1]) * sizes[2] + position[2];
}

/// True if every position that both sizes have has one number among either's: always for sequences, and for
/// images of one width.
[[nodiscard]] bool numbers_agree(const Index3& left, const Index3& right);

/// A window along three axes.
struct Window3 {
  Index3 size{1, 1, 1};
  Index3 stride{1, 1, 1};
  Padding padding = Padding::same;
  Index3 begin{0, 0, 0};   ///< The first position of each axis that windows see.
  Index3 end{-1, -1, -1};  ///< The first position after those; -1 if there is none.

  explicit Window3(const Window& window);
  [[nodiscard]] Index3 front(const Index3& input) const;  ///< Padding before each axis.
  [[nodiscard]] Index3 output(const Index3& input) const;
  [[nodiscard]] bool is_single_position() const;
};

/// Along one axis: the positions a of the left input such that a + offset is a position of the right one.
struct AxisRange {
  Index origin;
  Index extent;  ///< Not positive: there are none.

  AxisRange(Index left, Index right, Index offset)
      : origin{std::max<Index>(0, -offset)}, extent{std::min(left, right - offset) - origin} {}
};

/// The plane of an offset: positions a of the left input such that a + offset is a position of the right one.
struct Box {
  Index3 offset;
  Index3 origin;  ///< The first such a.
  Index3 extent;  ///< Not positive along some axis: no such a.

  Box() : Box({1, 1, 1}, {1, 1, 1}, {0, 0, 0}) {}
  Box(const Index3& left, const Index3& right, const Index3& plane_offset) {
    for (std::size_t k = 0; k < 3; ++k) {
      const AxisRange range(left[k], right[k], plane_offset[k]);
      offset[k] = plane_offset[k];
      origin[k] = range.origin;
      extent[k] = range.extent;
    }
  }
  [[nodiscard]] bool empty() const { return extent[0] <= 0 || extent[1] <= 0 || extent[2] <= 0; }
  [[nodiscard]] Index size() const { return empty() ? 0 : product(extent); }
};

/// Calls body(i, j) for every row of an extent.
template <typename Body>
void for_each_row(const Index3& extent, const Body& body) {
  for (Index i = 0; i < extent[0]; ++i)
    for (Index j = 0; j < extent[1]; ++j) body(i, j);
}

}  // namespace widelimit
