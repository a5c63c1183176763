// Auxiliary arrays of PlaneExecutor: those of a tile's inputs, laid out as planes for the current offset.
//
// Planes of offsets that agree along the last axis consist of the same parts of rows. These are packed once,
// for all rows of an input: a strip. A plane is then a piece of it.
#include <algorithm>

#include "kernel/plane_executor.hpp"
#include "kernel/plane_windows.hpp"
#include "numerics/rows/linear_rows.hpp"

namespace widelimit {

/// Gives every array of a run its place.
template <typename Scalar>
void PlaneExecutor<Scalar>::take_packs(const Run& run) {
  right_places_ = 0;
  for (const TilePair& pair : tile_->pairs) right_places_ = std::max(right_places_, right_place(pair) + 1);
  strips_at_.reset();
  const bool strips = geometry_.uses_strips(run.root);
  Scalar *pack = packs_.data(), *strip = strips_.data();
  const auto take = [](std::vector<Scalar*>& pointers, Index arrays, Index numbers, Scalar*& next) {
    pointers.clear();
    for (Index k = 0; k < arrays; ++k, next += numbers) pointers.push_back(next);
  };
  for (std::size_t i = 0; i < run.instructions.size(); ++i) {
    Placed& placed = placed_[i];
    take(placed.left, placed.arrays, side_ * geometry_.plane_capacity, pack);
    take(placed.right, placed.arrays, 2 * side_ * geometry_.plane_capacity, pack);
    take(placed.left_strips, strips ? placed.arrays : 0, side_ * geometry_.strip_capacity, strip);
    take(placed.right_strips, strips ? placed.arrays : 0, side_ * geometry_.strip_capacity, strip);
    placed.left_row.resize(placed.left.size());
    placed.right_row.resize(placed.left.size());
  }
}

/// Where the right input of a pair is packed. Diagonals run on behind the last right input, where the first
/// ones follow again.
template <typename Scalar>
Index PlaneExecutor<Scalar>::right_place(const TilePair& pair) const {
  const auto count = static_cast<Index>(tile_->right.size());
  return pair.left + ((pair.right - pair.left) % count + count) % count;
}

/// Packs all arrays of a run.
template <typename Scalar>
void PlaneExecutor<Scalar>::pack(const Run& run) {
  const Box& box = placed_[run.instructions.size() - 1].box;
  const bool strips = geometry_.uses_strips(run.root) && !is_zero(box.offset);
  const Index at = box.offset[2];
  const bool moved = strips && strips_at_ != at;
  if (moved) strips_at_ = at;
  for (std::size_t i = 0; i < run.instructions.size(); ++i) {
    Placed& placed = placed_[i];
    if (placed.arrays == 0) continue;
    const NodeId node = run.instructions[i].node;
    placed.source = array_source(node, placed, strips);
    timer_.time(node, [&] {
      // A strip serves offsets along the other axes too, whether this plane is empty or not.
      if (moved && placed.box.extent[2] > 0) pack_strips(node, placed);
      if (placed.source == Placed::Source::packs && !placed.box.empty()) pack_planes(node, placed, strips);
    });
  }
}

template <typename Scalar>
typename PlaneExecutor<Scalar>::Placed::Source PlaneExecutor<Scalar>::array_source(NodeId node,
                                                                                   const Placed& placed,
                                                                                   bool strips) const {
  using Source = typename Placed::Source;
  if (stacks_many_) return Source::packs;
  const bool whole = placed.is_diagonal && placed.layout == tile_->left[0]->layout().planes[node] &&
                     placed.layout == tile_->right[0]->layout().planes[node];
  if (whole) return Source::whole_states;
  // The slabs of a plane are not neighbours in a strip.
  if (placed.box.extent[0] != 1) return Source::packs;
  if (placed.box.extent[1] == 1) return Source::state_rows;
  return strips ? Source::strips : Source::packs;
}

template <typename Scalar>
void PlaneExecutor<Scalar>::pack_strips(NodeId node, const Placed& placed) {
  const auto& rows = numerics::linear_rows<Scalar>();
  const PlaneLayout& layout = placed.layout;
  const auto pack_side = [&](const std::vector<const InputState<Scalar>*>& inputs, const Index3& sizes,
                             Index first, const std::vector<Scalar*>& strips) {
    for (Index k = 0; k < placed.arrays; ++k) {
      Scalar* strip = strips[static_cast<std::size_t>(k)];
      for (const InputState<Scalar>* input : inputs) {
        const PlaneLayout& kept = input->layout().planes[node];
        for (Index x = 0; x < sizes[0]; ++x, strip += sizes[1] * layout.stride[1])
          rows.pack(input->array(node, k) + kept.at(x, 0) + first, kept.stride[1],
                    static_cast<std::size_t>(sizes[1]), static_cast<std::size_t>(layout.extent[2]), strip,
                    static_cast<std::size_t>(layout.stride[1]));
      }
    }
  };
  const Index origin = placed.box.origin[2];
  pack_side(tile_->left, geometry_.left_sizes[node], origin, placed.left_strips);
  pack_side(tile_->right, geometry_.right_sizes[node], origin + placed.box.offset[2], placed.right_strips);
}

/// From strips, or from the arrays themselves.
template <typename Scalar>
void PlaneExecutor<Scalar>::pack_planes(NodeId node, const Placed& placed, bool from_strips) {
  const PlaneLayout& layout = placed.layout;
  const auto pack_side = [&](const std::vector<const InputState<Scalar>*>& inputs, Index array,
                             const Index3& sizes, const Index3& origin, const Scalar* strip, Scalar* target) {
    const Index first_row = origin[0] * sizes[1] + origin[1];
    for (const InputState<Scalar>* input : inputs) {
      if (from_strips) {
        pack_strip(strip + first_row * layout.stride[1], sizes[1], layout, target);
        strip += sizes[0] * sizes[1] * layout.stride[1];
      } else {
        const PlaneLayout& kept = input->layout().planes[node];
        pack_plane(input->array(node, array) + kept.at(origin[0], origin[1]) + origin[2],
                   {kept.stride[0], kept.stride[1]}, layout, target);
      }
      target += layout.length;
    }
  };
  const Box& box = placed.box;
  const Index3 end{box.origin[0] + box.offset[0], box.origin[1] + box.offset[1],
                   box.origin[2] + box.offset[2]};
  const auto right_count = static_cast<Index>(tile_->right.size());
  for (Index k = 0; k < placed.arrays; ++k) {
    const auto number = static_cast<std::size_t>(k);
    Scalar* right = placed.right[number];
    pack_side(tile_->left, k, geometry_.left_sizes[node], box.origin,
              from_strips ? placed.left_strips[number] : nullptr, placed.left[number]);
    pack_side(tile_->right, k, geometry_.right_sizes[node], end,
              from_strips ? placed.right_strips[number] : nullptr, right);
    // Plane by plane: with fewer right inputs than left ones, copies are copied again.
    for (Index place = right_count; stacks_many_ && place < right_places_; ++place)
      std::copy_n(right + (place - right_count) * layout.length, layout.length,
                  right + place * layout.length);
  }
}

/// Points the rows of auxiliary arrays to those of a stack.
template <typename Scalar>
void PlaneExecutor<Scalar>::choose_rows(const Run& run, const Stack& stack) {
  using Source = typename Placed::Source;
  const Index right = tile_->pairs[static_cast<std::size_t>(stack.first_pair)].right;
  const InputState<Scalar>& left_state = *tile_->left[static_cast<std::size_t>(stack.left)];
  const InputState<Scalar>& right_state = *tile_->right[static_cast<std::size_t>(right)];
  for (std::size_t i = 0; i < run.instructions.size(); ++i) {
    Placed& placed = placed_[i];
    if (placed.arrays == 0) continue;
    const NodeId node = run.instructions[i].node;
    // Of an input's array, where the plane begins whose first position is `first`.
    const auto begin = [&](const InputState<Scalar>& state, Index input, Index packed_as, const Index3& sizes,
                           const Index3& first) {
      if (placed.source == Source::packs) return packed_as * placed.layout.length;
      if (placed.source == Source::strips)
        return ((input * sizes[0] + first[0]) * sizes[1] + first[1]) * placed.layout.stride[1];
      return state.layout().planes[node].at(first[0], first[1]) + first[2];
    };
    const auto array = [&](const InputState<Scalar>& state, const std::vector<Scalar*>& packs,
                           const std::vector<Scalar*>& strips, std::size_t k) -> const Scalar* {
      if (placed.source == Source::packs) return packs[k];
      return placed.source == Source::strips ? strips[k] : state.array(node, static_cast<Index>(k));
    };
    const Index3 &origin = placed.box.origin, &offset = placed.box.offset;
    const Index left_begin = begin(left_state, stack.left, stack.left, geometry_.left_sizes[node], origin);
    const Index right_begin =
        begin(right_state, right, stacks_many_ ? stack.right : right, geometry_.right_sizes[node],
              {origin[0] + offset[0], origin[1] + offset[1], origin[2] + offset[2]});
    for (std::size_t k = 0; k < placed.left.size(); ++k) {
      placed.left_row[k] = array(left_state, placed.left, placed.left_strips, k) + left_begin;
      placed.right_row[k] = array(right_state, placed.right, placed.right_strips, k) + right_begin;
    }
  }
}

// What the other files of the class call.
template void PlaneExecutor<float>::take_packs(const Run&);
template Index PlaneExecutor<float>::right_place(const TilePair&) const;
template void PlaneExecutor<float>::pack(const Run&);
template void PlaneExecutor<float>::pack_planes(NodeId, const Placed&, bool);
template void PlaneExecutor<float>::choose_rows(const Run&, const Stack&);
template void PlaneExecutor<double>::take_packs(const Run&);
template Index PlaneExecutor<double>::right_place(const TilePair&) const;
template void PlaneExecutor<double>::pack(const Run&);
template void PlaneExecutor<double>::pack_planes(NodeId, const Placed&, bool);
template void PlaneExecutor<double>::choose_rows(const Run&, const Stack&);

}  // namespace widelimit
