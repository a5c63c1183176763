#pragma once

#include "kernel/plan/geometry.hpp"
#include "kernel/plan/pair_geometry.hpp"

namespace widelimit {

enum class Side { left, right };

/// How the rows of an input stand in its strip (planes/strips.hpp): all in order, if planes are of one piece.
///
/// Planes of complementary offsets need every row, in two pieces. On the right they begin in the middle of
/// the input and go on with its first rows, so these follow once more, behind guards. On the left all rows
/// stand in order, but with guards where the pieces meet: these move from offset to offset.
struct StripLayout {
  Index slabs = 1;
  Index slab_rows = 0;
  Index gap_rows = 0;  ///< Guards.
  bool repeats = false;

  /// For the planes of an instruction of a run. `sizes`: of the input's positions there.
  StripLayout(const RunGeometry& run, std::size_t instruction, const Index3& sizes, Side side)
      : slabs{sizes[0]},
        slab_rows{sizes[1]},
        gap_rows{run.gap(instruction, 1)},
        repeats{run.complements && side == Side::right} {}

  [[nodiscard]] Index rows() const { return (repeats ? 2 : 1) * slabs * slab_rows + gap_rows; }
  /// Left guards stand before every row of a plane that does not begin with the input's first one.
  [[nodiscard]] Index row(const Index3& position) const {
    const Index row = position[0] * slab_rows + position[1];
    return !repeats && position[1] > 0 ? row + gap_rows : row;
  }
  [[nodiscard]] bool moves_gap() const { return !repeats && gap_rows > 0; }
};

}  // namespace widelimit
