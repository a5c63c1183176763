#pragma once

#include <array>
#include <span>
#include <vector>

#include "kernel/backends/cpu/planes/stacks.hpp"
#include "kernel/backends/cpu/planes/strips.hpp"
#include "kernel/backends/cpu/planes/workspace.hpp"

namespace widelimit {

/// Where the auxiliary arrays of a plane are read. They are packed for it; planes that are not stacked can also read
/// them in place: in strips, or in the states if they are single rows or whole images.
enum class ArraySource { packs, strips, state_rows, whole_states };

/// How arrays are laid out for the planes of an offset.
struct ArrayPlacement {
  bool uses_strips;    ///< Whether planes of these offsets are pieces of strips.
  bool cuts_strips;    ///< Whether the offset along the last axis is not that of the last planes.
  bool stacked;        ///< Whether pairs are stacked; arrays are then packed in their order.
  Index right_places;  ///< PairStacks::right_places().
};

/// The auxiliary arrays of an instruction, for one side of a tile.
template <typename Scalar>
class SideArrays {
 public:
  explicit SideArrays(const SideStates<Scalar>& states) : states_{states}, strips_(states) {}

  /// Sets the inputs whose arrays are read.
  void read_inputs(std::span<const InputState<Scalar>* const> inputs) {
    states_.inputs = inputs;
    strips_.read_inputs(inputs);
  }
  /// Takes room for the packs of all arrays, `numbers` for each array, and moves `next` behind it.
  void take_packs(Scalar*& next, Index numbers);
  [[nodiscard]] Strips<Scalar>& strips() { return strips_; }

  /// Lets find_rows() point to the packs of this plane.
  void read_packs(const PlacedPlane& plane) {
    place_ = {0, plane.layout.length}, source_ = ArraySource::packs;
  }
  /// Lets find_rows() point to this plane in strips or states.
  void read_in_place(const PlacedPlane& plane, ArraySource source);
  /// Packs the plane of every input, and repeats the first inputs until there are `places`.
  void pack(const PlacedPlane& plane, bool from_strips, Index places);

  /// Spreads the arrays of sequences over whole matrices, with so many positions on the other side, and lets
  /// find_rows() point to them.
  void pack_whole(Index others);

  /// True if the states contain all entries of the plane, laid out like the plane itself.
  [[nodiscard]] bool is_whole(const PlacedPlane& plane) const {
    return plane.is_diagonal && plane.layout == states_.layout(0);
  }
  /// Points rows[k] to where the plane begins in array k of an input. If planes are packed, it is the one that was
  /// packed at `place`.
  void find_rows(Index input, Index place, const Scalar** rows) const;

 private:
  /// Where the plane begins in an array of the first input, and the distance from there to the next input's.
  struct Place {
    Index begin;
    Index step;
  };

  SideStates<Scalar> states_;
  Strips<Scalar> strips_;
  std::vector<Scalar*> packs_;  ///< [array]
  ArraySource source_ = ArraySource::packs;
  Place place_{};
};

/// The auxiliary arrays of an instruction for both sides of a tile, laid out like the planes of the current offset.
template <typename Scalar>
class AuxiliaryArrays {
 public:
  AuxiliaryArrays(const SideStates<Scalar>& left, const SideStates<Scalar>& right);

  /// Sets the inputs of a tile whose arrays are read.
  void read_inputs(std::span<const InputState<Scalar>* const> left,
                   std::span<const InputState<Scalar>* const> right) {
    left_.read_inputs(left);
    right_.read_inputs(right);
  }
  /// Takes room for tiles of this size.
  void take_room(Scalar*& packs, Scalar*& strips, bool uses_strips, const PlaneSizes& sizes,
                 const TileSize& tile);

  [[nodiscard]] Index count() const { return static_cast<Index>(rows_[0].size()); }
  /// Says that packs will be read for this plane. They are made later.
  void expect_packs(const PlacedPlane& plane);
  /// Packs the plane from the states, not from strips.
  void pack(const PlacedPlane& plane);
  /// Packs the arrays for whole matrices between sequences of so many positions.
  void pack_whole(Index left_positions, Index right_positions);
  /// Lays the arrays out for a plane, unless they can be read in place.
  void place(const PlacedPlane& plane, const ArrayPlacement& placement);

  /// Points rows() to the arrays of a stack's first pair.
  void choose(const Stack& stack, bool stacked);
  /// Pointers [array] to the arrays of the current stack.
  [[nodiscard]] const Scalar* const* rows(Side side) const {
    return rows_[static_cast<std::size_t>(side)].data();
  }
  /// Points to the arrays of one input, if pairs are not stacked.
  void find_rows(Side side, Index input, const Scalar** rows) const {
    (side == Side::left ? left_ : right_).find_rows(input, input, rows);
  }
  /// True if the arrays are zero wherever the plane has guards. Other sources continue with other numbers after the
  /// last row of a plane (which then has a single slab).
  [[nodiscard]] bool are_guarded() const {
    return source_ == ArraySource::packs || source_ == ArraySource::whole_states;
  }

 private:
  [[nodiscard]] ArraySource choose_source(const PlacedPlane& plane, const ArrayPlacement& placement) const;

  SideArrays<Scalar> left_;
  SideArrays<Scalar> right_;
  ArraySource source_ = ArraySource::packs;
  std::array<std::vector<const Scalar*>, 2> rows_;  ///< [side][array]
};

}  // namespace widelimit
