#pragma once

#include "kernel/plan/geometry.hpp"
#include "kernel/plan/pair_geometry.hpp"

namespace widelimit {

enum class Side { left, right };

/// How the rows of an input are arranged in its strip (planes/strips.hpp). If planes have one piece, they are all
/// there in order.
///
/// Planes of complementary offsets contain every row, in two pieces. On the right side they begin in the middle of
/// the input and continue with its first rows, so these follow once more, after guards. On the left side all rows are
/// in order, but with guards where the pieces meet, which moves from offset to offset.
struct StripLayout {
  Index slabs = 1;
  Index slab_rows = 0;
  Index gap_rows = 0;  ///< Guard rows between the pieces.
  bool repeats = false;

  /// The layout for the planes of an instruction of a chain, where `sizes` are those of the input's positions there.
  StripLayout(const ChainGeometry& chain, std::size_t instruction, const Index3& sizes, Side side)
      : slabs{sizes[0]},
        slab_rows{sizes[1]},
        gap_rows{chain.gap(instruction, 1)},
        repeats{chain.complements && side == Side::right} {}

  [[nodiscard]] Index rows() const { return (repeats ? 2 : 1) * slabs * slab_rows + gap_rows; }
  /// The row of a position with which a plane begins. On the left side, guards come before it unless it is the
  /// input's first row.
  [[nodiscard]] Index row(const Index3& position) const {
    const Index row = position[0] * slab_rows + position[1];
    return !repeats && position[1] > 0 ? row + gap_rows : row;
  }
  [[nodiscard]] bool moves_gap() const { return !repeats && gap_rows > 0; }
};

}  // namespace widelimit
