#pragma once

#include <algorithm>
#include <memory>

#include "kernel/backends/cpu/planes/plane_layout.hpp"

namespace widelimit {

/// A plane: its offset or two complementary ones along each axis, its positions, and how they lie in memory. It may
/// also stand for all of a pair's matrix, row by row.
struct PlacedPlane {
  std::array<AxisPieces, 3> axis;
  PlaneLayout layout;
  bool is_diagonal = false;  ///< Whether its only offset is 0.
  bool is_empty = false;     ///< Whether no positions have this offset.
  bool is_whole = false;     ///< Whether it is the whole matrix between two sequences.

  /// Lays out the plane of an instruction of a chain, between inputs of these sizes, for offsets of the root.
  void place(const ChainGeometry& chain, std::size_t instruction, const PlaneOffsets& offsets,
             const Index3& left, const Index3& right) {
    const OffsetMap& map = chain.maps[instruction];
    for (std::size_t k = 0; k < 3; ++k)
      axis[k].lay_out(left[k], right[k], offsets[k], map.stride[k], map.shift[k], chain.gap(instruction, k));
    // The layout is constructed in place: copying it by wide loads would wait for the narrow stores that have just
    // made the original.
    std::construct_at(&layout, axis, chain.guard);
    set_flags();
  }

  /// Lays out the matrix between sequences of these sizes.
  void place_whole(const Index3& left, const Index3& right) {
    layout = PlaneLayout(Index3{1, product(left), product(right)}, Index3{0, 0, 0});
    is_diagonal = is_empty = false;
    is_whole = true;
  }

  /// The plane of a single offset, without guards.
  static PlacedPlane alone(const Index3& offset, const Index3& left, const Index3& right) {
    PlacedPlane plane;
    for (std::size_t k = 0; k < 3; ++k)
      plane.axis[k].lay_out(left[k], right[k], {{offset[k], 0}, 1}, 1, 0, 0);
    plane.layout = PlaneLayout(plane.axis, Index3{0, 0, 0});
    plane.set_flags();
    return plane;
  }

  [[nodiscard]] bool empty() const { return is_empty; }
  /// True if it is the plane of this offset alone.
  [[nodiscard]] bool has_offset(const Index3& offset) const {
    for (std::size_t k = 0; k < 3; ++k)
      if (axis[k].count > 1 || axis[k].offset[0] != offset[k]) return false;
    return true;
  }
  /// The place after the last row of a plane that has one slab.
  [[nodiscard]] Index end_of_rows() const {
    return (layout.extent[1] - 1) * layout.stride[1] + layout.extent[2];
  }
  /// Calls body(box, begin) for every piece: its offset and positions, and where it begins in the plane.
  template <typename Body>
  void for_each_piece(const Body& body) const {
    for (std::size_t y = 0; y < static_cast<std::size_t>(axis[1].count); ++y)
      for (std::size_t z = 0; z < static_cast<std::size_t>(axis[2].count); ++z)
        body(piece_box(axis, {0, y, z}), layout.at(0, axis[1].start[y]) + axis[2].start[z]);
  }

 private:
  void set_flags() {
    is_whole = false;
    is_diagonal = has_offset({0, 0, 0});
    is_empty = axis[0].extent[0] <= 0 || axis[1].extent[0] <= 0 || axis[2].extent[0] <= 0;
  }
};

}  // namespace widelimit
