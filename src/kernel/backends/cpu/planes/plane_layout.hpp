#pragma once

#include <array>

#include "kernel/plan/geometry.hpp"
#include "kernel/plan/pair_geometry.hpp"

/// How a plane lies in memory (docs/engine.md).
namespace widelimit {

/// The positions of a plane along an axis. Planes of one offset have one piece; those of complementary offsets have
/// two, one after the other.
struct AxisPieces {
  std::array<Index, 2> offset{};
  std::array<Index, 2> origin{};  ///< The first position of the left input.
  std::array<Index, 2> extent{};  ///< The number of positions; none if it is not positive.
  std::array<Index, 2> start{};   ///< Where the piece begins in the plane.
  Index count = 0;

  /// Lays out the offsets stride * offset + shift between axes of `left` and `right` positions, with a gap between
  /// the pieces.
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
  /// The first position of the left axis after which guards may follow: the end of the first piece. If there is only
  /// the second piece (a negative offset), it is where that begins.
  [[nodiscard]] Index first_gap() const { return offset[0] < 0 ? origin[0] : extent[0]; }
  /// The length of all pieces with their gap.
  [[nodiscard]] Index length() const { return count == 2 ? start[1] + extent[1] : extent[0]; }
};

/// The box of one piece along every axis.
inline Box piece_box(const std::array<AxisPieces, 3>& axis, const std::array<std::size_t, 3>& piece) {
  Box box;
  for (std::size_t k = 0; k < 3; ++k) {
    box.offset[k] = axis[k].offset[piece[k]];
    box.origin[k] = axis[k].origin[piece[k]];
    box.extent[k] = axis[k].extent[piece[k]];
  }
  return box;
}

/// How a plane lies in memory (see the picture in docs/engine.md): rows one after the other with guard entries at the
/// end of each row, guard rows at the end of each slab, and guard slabs at the end, so that a stride-1 convolution is
/// a sum of shifted copies. What guards the end of a plane also guards the beginning of the next one. Before the
/// first plane there is a margin as long as the farthest shift.
///
/// A plane of complementary offsets has guards between its pieces as well.
struct PlaneLayout {
  Index3 extent;
  Index3 guard;
  Index3 gap;       ///< Where the guards between two pieces begin; equal to extent if there is one piece.
  Index3 gap_size;  ///< Their number.
  Index3 stride;
  Index length;  ///< Numbers from one plane to the next, guards included.

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

}  // namespace widelimit
