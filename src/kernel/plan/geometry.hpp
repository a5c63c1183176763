#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "widelimit/layers/window.hpp"
#include "widelimit/network/shape.hpp"

/// Offset planes of a pair of inputs (docs/engine.md). Everything here has three axes; leading axes of size 1
/// stand for the ones that are not there.
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

  explicit Window3(const Window& window);
  [[nodiscard]] Index3 front(const Index3& input) const;  ///< Padding in front of each axis.
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

/// One offset along an axis; or two that complement each other, delta and delta - d for two axes of length d:
/// their positions fill the left axis.
struct AxisOffsets {
  std::array<Index, 2> offset;
  Index count;
};

/// The positions of a plane along an axis, in one piece; or in two, one behind the other, of complementary
/// offsets.
struct AxisPieces {
  std::array<Index, 2> offset{};
  std::array<Index, 2> origin{};  ///< The first position.
  std::array<Index, 2> extent{};  ///< Not positive: there is none.
  std::array<Index, 2> start{};   ///< Where the piece begins in the plane.
  Index count = 0;

  /// Lays out the planes of stride * offset + shift, between left and right axes, with a gap between pieces.
  void lay_out(Index left, Index right, const AxisOffsets& offsets, Index stride, Index shift, Index gap) {
    count = offsets.count;
    for (std::size_t j = 0; j < static_cast<std::size_t>(count); ++j) {
      offset[j] = stride * offsets.offset[j] + shift;
      const AxisRange range(left, right, offset[j]);
      origin[j] = range.origin;
      extent[j] = range.extent;
      start[j] = j == 0 ? 0 : extent[0] + gap;
    }
  }
  /// That of the plane.
  [[nodiscard]] Index length() const { return count == 2 ? start[1] + extent[1] : extent[0]; }
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
  /// One piece along every axis.
  Box(const std::array<AxisPieces, 3>& axis, const std::array<std::size_t, 3>& piece) {
    for (std::size_t k = 0; k < 3; ++k) {
      offset[k] = axis[k].offset[piece[k]];
      origin[k] = axis[k].origin[piece[k]];
      extent[k] = axis[k].extent[piece[k]];
    }
  }
  [[nodiscard]] bool empty() const { return extent[0] <= 0 || extent[1] <= 0 || extent[2] <= 0; }
  [[nodiscard]] Index size() const { return empty() ? 0 : product(extent); }
};

/// How a plane lies in memory: rows one behind the other with guard entries at the end of each row, guard
/// rows at the end of each slab and guard slabs at the end, so that a stride-1 convolution is a sum of
/// shifted copies. What guards a plane also guards the one behind it; a margin as long as the farthest shift
/// stands before the first.
///
/// A plane of complementary offsets has guards between its pieces too.
struct PlaneLayout {
  Index3 extent;
  Index3 guard;
  Index3 gap;       ///< Where the guards between two pieces begin; equal to extent if there is one piece.
  Index3 gap_size;  ///< Their number.
  Index3 stride;
  Index length;  ///< From the first entry to the next plane, guards included.

  PlaneLayout() : PlaneLayout(Index3{0, 0, 0}, Index3{0, 0, 0}) {}
  PlaneLayout(const Index3& plane_extent, const Index3& plane_guard) {
    for (std::size_t k = 0; k < 3; ++k) {
      extent[k] = gap[k] = plane_extent[k];
      guard[k] = plane_guard[k];
      gap_size[k] = 0;
    }
    set_strides();
  }
  PlaneLayout(const std::array<AxisPieces, 3>& axis, const Index3& plane_guard) {
    for (std::size_t k = 0; k < 3; ++k) {
      extent[k] = axis[k].length();
      gap[k] = axis[k].extent[0];
      gap_size[k] = axis[k].count == 2 ? axis[k].start[1] - gap[k] : 0;
      guard[k] = plane_guard[k];
    }
    set_strides();
  }
  [[nodiscard]] Index at(Index i, Index j) const {
    return i * stride[0] + j * stride[1];
  }  ///< Start of a row.
  [[nodiscard]] Index margin() const;
  [[nodiscard]] bool operator==(const PlaneLayout&) const = default;

 private:
  void set_strides() {
    stride[2] = 1;
    stride[1] = extent[2] + guard[2];
    stride[0] = (extent[1] + guard[1]) * stride[1];
    length = (extent[0] + guard[0]) * stride[0];
  }
};

/// Calls body(i, j) for every row of an extent.
template <typename Body>
void for_each_row(const Index3& extent, const Body& body) {
  for (Index i = 0; i < extent[0]; ++i)
    for (Index j = 0; j < extent[1]; ++j) body(i, j);
}

}  // namespace widelimit
