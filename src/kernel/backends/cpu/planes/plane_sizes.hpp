#pragma once

#include "kernel/plan/pair_geometry.hpp"
#include "kernel/plan/program.hpp"

namespace widelimit {

/// Small planes of several pairs are stacked one after the other, up to this many numbers. Calls then cost less for
/// each entry, and all planes of a chain still fit into the first-level cache.
inline constexpr Index stacked_numbers = 1024;

/// Room, in numbers, for the planes of any chain of a program between two inputs.
struct PlaneSizes {
  Index front = 0;     ///< Margin before the planes in a slot.
  Index capacity = 0;  ///< The largest plane, or stack of planes, with guards.
  Index strip = 0;     ///< The largest strip (planes/strips.hpp), for one input.
  Index row = 0;       ///< The longest row of a plane without gaps, padded.

  /// The distance from one slot to the next.
  [[nodiscard]] Index slot() const { return front + capacity; }
};

PlaneSizes plane_sizes(const Program& program, const PairGeometry& geometry);

}  // namespace widelimit
