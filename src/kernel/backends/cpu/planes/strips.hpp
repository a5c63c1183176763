#pragma once

#include <span>
#include <vector>

#include "kernel/backends/cpu/planes/input_state.hpp"
#include "kernel/backends/cpu/planes/placed_plane.hpp"
#include "kernel/backends/cpu/planes/strip_layout.hpp"

namespace widelimit {

/// The auxiliary arrays of a node for all inputs on one side of a tile, as the states keep them: laid out like the
/// plane of offset 0.
template <typename Scalar>
struct SideStates {
  Side side;
  std::span<const InputState<Scalar>* const> inputs;
  NodeId node;
  Index arrays;  ///< Arrays of each input.
  StripLayout strip;

  [[nodiscard]] const PlaneLayout& layout(std::size_t input) const {
    return inputs[input]->layout().planes[node];
  }
  /// Array k of an input, from the row (x, y) on.
  [[nodiscard]] const Scalar* row(std::size_t input, Index k, Index x, Index y) const {
    return inputs[input]->array(node, k) + layout(input).at(x, y);
  }
};

/// The first position of a plane in an input of this side.
[[nodiscard]] inline Index3 first_position(const PlacedPlane& plane, Side side) {
  Index3 position;
  for (std::size_t k = 0; k < 3; ++k)
    position[k] = plane.axis[k].origin[0] + (side == Side::right ? plane.axis[k].offset[0] : 0);
  return position;
}

/// The auxiliary arrays of one side, cut once for all offsets that agree along the last axis: of every row, the
/// columns that the planes of these offsets have. A plane is a contiguous part of its input's strip.
template <typename Scalar>
class Strips {
 public:
  /// Strips without memory; take_room() must follow.
  explicit Strips(const SideStates<Scalar>& states) : states_{states} {}

  /// Sets the inputs whose strips are cut.
  void read_inputs(std::span<const InputState<Scalar>* const> inputs) { states_.inputs = inputs; }
  /// Takes `numbers` for each array, of all inputs of the side, and moves `next` behind them.
  void take_room(Scalar*& next, Index numbers);

  /// Cuts strips for the columns of a plane.
  void cut(const PlacedPlane& plane);
  /// Moves the guards to where the pieces of the plane meet. From one call to the next the gap moves towards the
  /// first row only, because offsets grow.
  void move_gap(const PlacedPlane& plane);

  /// Where the plane begins in the strip of an input: its first row.
  [[nodiscard]] Index first_row(const PlacedPlane& plane) const {
    return states_.strip.row(first_position(plane, states_.side));
  }
  /// The strips of every array, one input after the other.
  [[nodiscard]] const std::vector<Scalar*>& arrays() const { return arrays_; }

 private:
  void cut_rows(const AxisPieces& columns, const Scalar* source, Index source_step, Index stride,
                Scalar* strip) const;

  SideStates<Scalar> states_;
  Index gap_at_ = 0;  ///< The row of the left strips where the guards begin.
  std::vector<Scalar*> arrays_;
};

}  // namespace widelimit
