#include "kernel/backends/cpu/planes/auxiliary_arrays.hpp"

#include <algorithm>

#include "kernel/backends/cpu/planes/plane_windows.hpp"
#include "kernel/vector_padding.hpp"

namespace widelimit {

template <typename Scalar>
void SideArrays<Scalar>::take_packs(Scalar*& next, Index numbers) {
  packs_.reserve(static_cast<std::size_t>(states_.arrays));
  for (Index k = 0; k < states_.arrays; ++k, next += numbers) packs_.push_back(next);
}

template <typename Scalar>
void SideArrays<Scalar>::read_in_place(const PlacedPlane& plane, ArraySource source) {
  source_ = source;
  const Index stride = plane.layout.stride[1];
  if (source == ArraySource::strips) {
    place_ = {strips_.first_row(plane) * stride, states_.strip.rows() * stride};
    return;
  }
  const Index3 first = first_position(plane, states_.side);
  place_ = {states_.layout(0).at(first[0], first[1]) + first[2], 0};
}

template <typename Scalar>
void SideArrays<Scalar>::pack(const PlacedPlane& plane, bool from_strips, Index places) {
  const PlaneLayout& layout = plane.layout;
  const Index3 first = first_position(plane, states_.side);
  const Index stride = layout.stride[1], first_row = strips_.first_row(plane);
  for (std::size_t k = 0; k < packs_.size(); ++k) {
    Scalar* target = packs_[k];
    for (std::size_t input = 0; input < states_.inputs.size(); ++input, target += layout.length) {
      if (from_strips) {
        const Index row = static_cast<Index>(input) * states_.strip.rows() + first_row;
        pack_strip(strips_.arrays()[k] + row * stride, states_.strip.slab_rows, layout, target);
      } else {
        const PlaneLayout& kept = states_.layout(input);
        pack_plane(states_.row(input, static_cast<Index>(k), first[0], first[1]) + first[2],
                   {kept.stride[0], kept.stride[1]}, layout, target);
      }
    }
    // The first inputs are repeated plane by plane, because with fewer right inputs than left ones copies are copied
    // again.
    for (auto place = static_cast<Index>(states_.inputs.size()); place < places;
         ++place, target += layout.length)
      std::copy_n(target - static_cast<Index>(states_.inputs.size()) * layout.length, layout.length, target);
    // Rows are read by whole vectors. After the last plane stages read variances of 0, not what a wider tile left
    // there.
    const Index size = target - packs_[k];
    std::fill_n(target, padded(size) - size, Scalar{0});
  }
}

template <typename Scalar>
void SideArrays<Scalar>::pack_whole(Index others) {
  const bool is_left = states_.side == Side::left;
  const Index positions = states_.layout(0).extent[2], size = positions * others, step = padded(size);
  source_ = ArraySource::packs;
  place_ = {0, step};
  for (std::size_t k = 0; k < packs_.size(); ++k)
    for (std::size_t input = 0; input < states_.inputs.size(); ++input) {
      const Scalar* numbers = states_.row(input, static_cast<Index>(k), 0, 0);
      Scalar* target = packs_[k] + static_cast<Index>(input) * step;
      // Entry (a, b) of a matrix reads position a of the left input, so its number is repeated along a row; and
      // position b of the right one, so the whole array is repeated row by row.
      for (Index a = 0; is_left && a < positions; ++a) std::fill_n(target + a * others, others, numbers[a]);
      for (Index a = 0; !is_left && a < others; ++a) std::copy_n(numbers, positions, target + a * positions);
      std::fill(target + size, target + step, Scalar{0});
    }
}

template <typename Scalar>
void SideArrays<Scalar>::find_rows(Index input, Index place, const Scalar** rows) const {
  const bool packed = source_ == ArraySource::packs;
  const Index entry = place_.begin + (packed ? place : input) * place_.step;
  if (packed || source_ == ArraySource::strips) {
    const std::vector<Scalar*>& arrays = packed ? packs_ : strips_.arrays();
    for (std::size_t k = 0; k < arrays.size(); ++k) rows[k] = arrays[k] + entry;
    return;
  }
  const InputState<Scalar>& state = *states_.inputs[static_cast<std::size_t>(input)];
  for (std::size_t k = 0; k < packs_.size(); ++k)
    rows[k] = state.array(states_.node, static_cast<Index>(k)) + entry;
}

template <typename Scalar>
AuxiliaryArrays<Scalar>::AuxiliaryArrays(const SideStates<Scalar>& left, const SideStates<Scalar>& right)
    : left_(left), right_(right) {
  for (auto& rows : rows_) rows.resize(static_cast<std::size_t>(left.arrays));
}

template <typename Scalar>
void AuxiliaryArrays<Scalar>::take_room(Scalar*& packs, Scalar*& strips, bool uses_strips,
                                        const PlaneSizes& sizes, const TileSize& tile) {
  left_.take_packs(packs, tile.left * sizes.capacity);
  // Stacks need right inputs a second time (PairStacks::right_places()).
  right_.take_packs(packs, 2 * tile.right * sizes.capacity);
  if (!uses_strips) return;
  left_.strips().take_room(strips, tile.left * sizes.strip);
  right_.strips().take_room(strips, tile.right * sizes.strip);
}

template <typename Scalar>
void AuxiliaryArrays<Scalar>::expect_packs(const PlacedPlane& plane) {
  source_ = ArraySource::packs;
  left_.read_packs(plane);
  right_.read_packs(plane);
}

template <typename Scalar>
void AuxiliaryArrays<Scalar>::pack(const PlacedPlane& plane) {
  left_.pack(plane, false, 0);
  right_.pack(plane, false, 0);
}

template <typename Scalar>
void AuxiliaryArrays<Scalar>::pack_whole(Index left_positions, Index right_positions) {
  if (count() == 0) return;
  source_ = ArraySource::packs;
  left_.pack_whole(right_positions);
  right_.pack_whole(left_positions);
}

template <typename Scalar>
ArraySource AuxiliaryArrays<Scalar>::choose_source(const PlacedPlane& plane,
                                                   const ArrayPlacement& placement) const {
  if (placement.stacked) return ArraySource::packs;
  if (left_.is_whole(plane) && right_.is_whole(plane)) return ArraySource::whole_states;
  // Slabs of a plane are not contiguous in a strip, whose slabs have all rows of the input.
  if (plane.layout.extent[0] != 1) return ArraySource::packs;
  if (plane.layout.extent[1] == 1 && plane.axis[2].count == 1) return ArraySource::state_rows;
  return placement.uses_strips ? ArraySource::strips : ArraySource::packs;
}

template <typename Scalar>
void AuxiliaryArrays<Scalar>::place(const PlacedPlane& plane, const ArrayPlacement& placement) {
  if (count() == 0) return;
  source_ = choose_source(plane, placement);
  for (SideArrays<Scalar>* side : {&left_, &right_}) {
    // A strip also serves other offsets along the first two axes, so it is cut even if this plane is empty.
    if (placement.cuts_strips && plane.axis[2].extent[0] > 0) side->strips().cut(plane);
    if (placement.uses_strips) side->strips().move_gap(plane);
    if (source_ != ArraySource::packs) {
      side->read_in_place(plane, source_);
      continue;
    }
    side->read_packs(plane);
    if (!plane.empty()) {
      const bool repeats = side == &right_ && placement.stacked;
      side->pack(plane, placement.uses_strips, repeats ? placement.right_places : 0);
    }
  }
}

template <typename Scalar>
void AuxiliaryArrays<Scalar>::choose(const Stack& stack, bool stacked) {
  if (count() == 0) return;
  left_.find_rows(stack.left, stack.left, rows_[0].data());
  right_.find_rows(stack.right, stacked ? stack.right_place : stack.right, rows_[1].data());
}

template class SideArrays<float>;
template class SideArrays<double>;
template class AuxiliaryArrays<float>;
template class AuxiliaryArrays<double>;

}  // namespace widelimit
