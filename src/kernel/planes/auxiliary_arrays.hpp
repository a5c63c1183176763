#pragma once

#include <array>
#include <span>
#include <vector>

#include "kernel/planes/stacks.hpp"
#include "kernel/planes/strips.hpp"
#include "kernel/planes/workspace.hpp"

namespace widelimit {

/// Where the auxiliary arrays of a plane are read: packed for it; or, by planes that are not stacked, where
/// they lie: in strips, or in the states, if they are whole images or single rows.
enum class ArraySource { packs, strips, state_rows, whole_states };

/// How arrays are laid out for the plane of an offset.
struct ArrayPlacement {
  bool uses_strips;    ///< Planes of these offsets are pieces of strips.
  bool cuts_strips;    ///< They are the first along the last axis with this offset.
  bool stacked;        ///< Some pairs are stacked: arrays are packed in the order of the stacks.
  Index right_places;  ///< See PairStacks.
};

/// The auxiliary arrays of an instruction, of one side of a tile.
template <typename Scalar>
class SideArrays {
 public:
  explicit SideArrays(const SideStates<Scalar>& states) : states_{states}, strips_(states) {}

  /// From now on these inputs' arrays are read.
  void read_inputs(std::span<const InputState<Scalar>* const> inputs) {
    states_.inputs = inputs;
    strips_.read_inputs(inputs);
  }
  /// Takes `numbers` from `next` on for the packs of an array, of all inputs.
  void take_packs(Scalar*& next, Index numbers);
  [[nodiscard]] Strips<Scalar>& strips() { return strips_; }

  /// From now on the plane's packs are read.
  void read_packs(const PlacedPlane& plane) {
    place_ = {0, plane.layout.length}, source_ = ArraySource::packs;
  }
  /// From now on the plane is read in strips or states.
  void read_in_place(const PlacedPlane& plane, ArraySource source);
  /// Packs the plane of every input, and the first ones again until there are `places`.
  void pack(const PlacedPlane& plane, bool from_strips, Index places);

  /// Spreads the arrays of sequences over matrices with so many positions
  /// of the other side, and reads them from now on.
  void pack_whole(Index others);

  /// True if the plane lies in the states of all inputs as a whole.
  [[nodiscard]] bool is_whole(const PlacedPlane& plane) const {
    return plane.is_diagonal && plane.layout == states_.layout(0);
  }
  /// Points rows[k] to where the plane begins in array k of an input; or, if it was packed, of the one packed
  /// at `place`.
  void find_rows(Index input, Index place, const Scalar** rows) const;

 private:
  /// Where the plane begins in an array of the first input, and how far the next input's is from there.
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

/// The auxiliary arrays of an instruction: those of a tile's inputs, where an instruction finds them as
/// planes for the current offset.
template <typename Scalar>
class AuxiliaryArrays {
 public:
  AuxiliaryArrays(const SideStates<Scalar>& left, const SideStates<Scalar>& right);

  /// From now on the arrays of these inputs of a tile are read.
  void read_inputs(std::span<const InputState<Scalar>* const> left,
                   std::span<const InputState<Scalar>* const> right) {
    left_.read_inputs(left);
    right_.read_inputs(right);
  }
  /// Takes room for tiles of this size.
  void take_room(Scalar*& packs, Scalar*& strips, bool uses_strips, const PlaneSizes& sizes,
                 const TileSize& tile);

  [[nodiscard]] Index count() const { return static_cast<Index>(rows_[0].size()); }
  /// From now on, packs are read for this plane; they are still to be made.
  void expect_packs(const PlacedPlane& plane);
  /// Packs the plane straight from the states.
  void pack(const PlacedPlane& plane);
  /// Packs what belongs to the entries of matrices between sequences of so many positions.
  void pack_whole(Index left_positions, Index right_positions);
  /// Lays the arrays out for a plane, where they do not lie well already.
  void place(const PlacedPlane& plane, const ArrayPlacement& placement);

  /// Points rows() to those of a stack's first pair.
  void choose(const Stack& stack, bool stacked);
  /// [array], of the current stack.
  [[nodiscard]] const Scalar* const* rows(Side side) const {
    return rows_[static_cast<std::size_t>(side)].data();
  }
  /// Those of an input, wherever pairs are not stacked.
  void find_rows(Side side, Index input, const Scalar** rows) const {
    (side == Side::left ? left_ : right_).find_rows(input, input, rows);
  }
  /// True if the arrays are zero wherever the plane has guards. Others go on with other numbers after the
  /// last row of a (single slab of a) plane.
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
