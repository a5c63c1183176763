// Auxiliary arrays of PlaneExecutor: those of a tile's inputs, laid out as planes for the current offset.
//
// Planes of offsets that agree along the last axis consist of the same parts of rows. These are packed once,
// for all rows of an input: a strip. A plane is then a piece of it.
#include <algorithm>

#include "kernel/planes/plane_executor.hpp"
#include "kernel/planes/plane_windows.hpp"
#include "numerics/rows/linear_rows.hpp"

namespace widelimit {
namespace {

/// Of the row of a position.
Index strip_row(const Index3& sizes, const Index3& position) { return position[0] * sizes[1] + position[1]; }

}  // namespace

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
  const Placed& last = placed_[run.instructions.size() - 1];
  const bool strips = geometry_.uses_strips(run.root) && !last.is_diagonal;
  const Index at = last.axis[2].offset[0];
  const bool moved = strips && strips_at_ != at;
  if (moved) strips_at_ = at;
  for (std::size_t i = 0; i < run.instructions.size(); ++i) {
    Placed& placed = placed_[i];
    if (placed.arrays == 0) continue;
    const NodeId node = run.instructions[i].node;
    placed.source = array_source(node, placed, strips);
    timer_.time(node, [&] {
      // A strip serves offsets along the other axes too, whether this plane is empty or not.
      if (moved && placed.axis[2].extent[0] > 0) pack_strips(node, placed);
      if (strips) move_gaps(placed, node);
      if (placed.source == Placed::Source::packs && !placed.empty()) pack_planes(node, placed, strips);
      if (placed.source != Placed::Source::packs) locate(node, placed);
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
  if (placed.layout.extent[0] != 1) return Source::packs;
  if (placed.layout.extent[1] == 1 && placed.axis[2].count == 1) return Source::state_rows;
  return strips ? Source::strips : Source::packs;
}

/// Rows of the strips of a left and of a right input. A plane of complementary offsets begins in the middle
/// of the right input and goes on with its first rows, so these follow once more behind guards; its left rows
/// are all rows in order, but with guards where the pieces meet.
template <typename Scalar>
std::array<Index, 2> PlaneExecutor<Scalar>::strip_rows(NodeId node, const Placed& placed) const {
  const Index3 &left = geometry_.left_sizes[node], &right = geometry_.right_sizes[node];
  const Index left_rows = left[0] * left[1], right_rows = right[0] * right[1];
  if (!run_->complements) return {left_rows, right_rows};
  return {left_rows + placed.gap_rows, 2 * right_rows + placed.gap_rows};
}

template <typename Scalar>
void PlaneExecutor<Scalar>::pack_strips(NodeId node, Placed& placed) {
  const auto& rows = numerics::linear_rows<Scalar>();
  const AxisPieces& pieces = placed.axis[2];
  const Index stride = placed.layout.stride[1];
  /// The rows of a slab.
  const auto pack_rows = [&](const Scalar* source, Index source_step, Index count,
                             const std::array<Index, 2>& origin, Scalar* strip) {
    if (pieces.count == 1)
      return rows.pack(source + origin[0], source_step, static_cast<std::size_t>(count),
                       static_cast<std::size_t>(pieces.extent[0]), strip, static_cast<std::size_t>(stride));
    rows.pack_pieces({source + origin[0], source_step, static_cast<std::size_t>(pieces.extent[0])},
                     {source + origin[1], source_step, static_cast<std::size_t>(pieces.extent[1])},
                     static_cast<std::size_t>(pieces.start[1]), static_cast<std::size_t>(count), strip,
                     static_cast<std::size_t>(stride));
  };
  const auto pack_side = [&](const std::vector<const InputState<Scalar>*>& inputs, const Index3& sizes,
                             const std::array<Index, 2>& origin, bool twice,
                             const std::vector<Scalar*>& strips) {
    for (Index k = 0; k < placed.arrays; ++k) {
      Scalar* strip = strips[static_cast<std::size_t>(k)];
      for (const InputState<Scalar>* input : inputs) {
        const PlaneLayout& kept = input->layout().planes[node];
        const Scalar* first = strip;
        for (Index x = 0; x < sizes[0]; ++x, strip += sizes[1] * stride)
          pack_rows(input->array(node, k) + kept.at(x, 0), kept.stride[1], sizes[1], origin, strip);
        strip = std::fill_n(strip, placed.gap_rows * stride, Scalar{0});
        if (twice) strip = std::copy_n(first, sizes[1] * stride, strip);
      }
    }
  };
  const std::array<Index, 2> right_origin{pieces.origin[0] + pieces.offset[0],
                                          pieces.origin[1] + pieces.offset[1]};
  const Index3 &left = geometry_.left_sizes[node], &right = geometry_.right_sizes[node];
  pack_side(tile_->left, left, pieces.origin, false, placed.left_strips);
  pack_side(tile_->right, right, right_origin, run_->complements, placed.right_strips);
  placed.strip_gap = left[1];
}

/// Moves the guards in the left strips to where the pieces of the current plane meet: as offsets grow,
/// towards the first row.
template <typename Scalar>
void PlaneExecutor<Scalar>::move_gaps(Placed& placed, NodeId node) {
  const AxisPieces& rows = placed.axis[1];
  const Index guard = placed.gap_rows, stride = placed.layout.stride[1];
  const Index gap = rows.offset[0] < 0 ? rows.origin[0] : rows.extent[0];
  if (guard == 0 || gap >= placed.strip_gap) return;
  const Index strip = strip_rows(node, placed)[0] * stride;
  for (Scalar* array : placed.left_strips)
    for (std::size_t i = 0; i < tile_->left.size(); ++i, array += strip) {
      Scalar *from = array + gap * stride, *to = from + guard * stride;
      std::copy_backward(from, array + placed.strip_gap * stride, to + (placed.strip_gap - gap) * stride);
      std::fill(from, to, Scalar{0});
    }
  placed.strip_gap = gap;
}

/// Where the plane begins in the left and in the right input; in left strips, the guards that stand before a
/// row count as rows.
template <typename Scalar>
std::array<Index3, 2> PlaneExecutor<Scalar>::first_positions(const Placed& placed, bool in_strips) const {
  Index3 left, right;
  for (std::size_t k = 0; k < 3; ++k) {
    left[k] = placed.axis[k].origin[0];
    right[k] = left[k] + placed.axis[k].offset[0];
  }
  if (in_strips && left[1] > 0) left[1] += placed.gap_rows;
  return {left, right};
}

/// From strips, or from the arrays themselves.
template <typename Scalar>
void PlaneExecutor<Scalar>::pack_planes(NodeId node, const Placed& placed, bool from_strips) {
  const PlaneLayout& layout = placed.layout;
  const auto [left_rows, right_rows] = strip_rows(node, placed);
  const auto pack_side = [&](const std::vector<const InputState<Scalar>*>& inputs, Index array,
                             const Index3& sizes, const Index3& origin, Index rows, const Scalar* strip,
                             Scalar* target) {
    for (const InputState<Scalar>* input : inputs) {
      if (from_strips) {
        pack_strip(strip + strip_row(sizes, origin) * layout.stride[1], sizes[1], layout, target);
        strip += rows * layout.stride[1];
      } else {
        const PlaneLayout& kept = input->layout().planes[node];
        pack_plane(input->array(node, array) + kept.at(origin[0], origin[1]) + origin[2],
                   {kept.stride[0], kept.stride[1]}, layout, target);
      }
      target += layout.length;
    }
  };
  const auto [begin, end] = first_positions(placed, from_strips);
  const auto right_count = static_cast<Index>(tile_->right.size());
  for (Index k = 0; k < placed.arrays; ++k) {
    const auto number = static_cast<std::size_t>(k);
    Scalar* right = placed.right[number];
    pack_side(tile_->left, k, geometry_.left_sizes[node], begin, left_rows,
              from_strips ? placed.left_strips[number] : nullptr, placed.left[number]);
    pack_side(tile_->right, k, geometry_.right_sizes[node], end, right_rows,
              from_strips ? placed.right_strips[number] : nullptr, right);
    // Plane by plane: with fewer right inputs than left ones, copies are copied again.
    for (Index place = right_count; stacks_many_ && place < right_places_; ++place)
      std::copy_n(right + (place - right_count) * layout.length, layout.length,
                  right + place * layout.length);
  }
}

/// Works out where the plane lies in strips or states; packs have a place of their own.
template <typename Scalar>
void PlaneExecutor<Scalar>::locate(NodeId node, Placed& placed) const {
  using Source = typename Placed::Source;
  const bool in_strips = placed.source == Source::strips;
  const auto first = first_positions(placed, in_strips);
  const auto rows = strip_rows(node, placed);
  for (std::size_t side = 0; side < 2; ++side) {
    auto& [begin, step] = placed.place[side];
    if (in_strips) {
      const Index3& sizes = (side == 0 ? geometry_.left_sizes : geometry_.right_sizes)[node];
      begin = strip_row(sizes, first[side]) * placed.layout.stride[1];
      step = rows[side] * placed.layout.stride[1];
    } else {
      const InputState<Scalar>& state = *(side == 0 ? tile_->left : tile_->right)[0];
      begin = state.layout().planes[node].at(first[side][0], first[side][1]) + first[side][2];
      step = 0;
    }
  }
}

/// Points `rows` to where the plane begins in every array of an input of the left (0) or right (1) side, or,
/// if it was packed, of the input packed at `place`.
template <typename Scalar>
void PlaneExecutor<Scalar>::find_rows(NodeId node, const Placed& placed, std::size_t side, Index input,
                                      Index place, const Scalar** rows) const {
  using Source = typename Placed::Source;
  const std::vector<Scalar*>& packs = side == 0 ? placed.left : placed.right;
  const auto& [begin, step] = placed.place[side];
  if (placed.source == Source::packs || placed.source == Source::strips) {
    const bool packed = placed.source == Source::packs;
    const std::vector<Scalar*>& strips = side == 0 ? placed.left_strips : placed.right_strips;
    const Index entry = begin + (packed ? place : input) * step;
    for (std::size_t k = 0; k < packs.size(); ++k) rows[k] = (packed ? packs : strips)[k] + entry;
    return;
  }
  const InputState<Scalar>& state =
      *(side == 0 ? tile_->left : tile_->right)[static_cast<std::size_t>(input)];
  for (std::size_t k = 0; k < packs.size(); ++k) rows[k] = state.array(node, static_cast<Index>(k)) + begin;
}

/// Points the rows of auxiliary arrays to those of a stack.
template <typename Scalar>
void PlaneExecutor<Scalar>::choose_rows(const Run& run, const Stack& stack) {
  const Index right = tile_->pairs[static_cast<std::size_t>(stack.first_pair)].right;
  for (std::size_t i = 0; i < run.instructions.size(); ++i) {
    Placed& placed = placed_[i];
    if (placed.arrays == 0 || is_made_in_blocks(i)) continue;
    const NodeId node = run.instructions[i].node;
    find_rows(node, placed, 0, stack.left, stack.left, placed.left_row.data());
    find_rows(node, placed, 1, right, stacks_many_ ? stack.right : right, placed.right_row.data());
  }
}

// What the other files of the class call.
template void PlaneExecutor<float>::take_packs(const Run&);
template Index PlaneExecutor<float>::right_place(const TilePair&) const;
template void PlaneExecutor<float>::pack(const Run&);
template void PlaneExecutor<float>::pack_planes(NodeId, const Placed&, bool);
template void PlaneExecutor<float>::find_rows(NodeId, const Placed&, std::size_t, Index, Index,
                                              const float**) const;
template void PlaneExecutor<float>::choose_rows(const Run&, const Stack&);
template void PlaneExecutor<double>::take_packs(const Run&);
template Index PlaneExecutor<double>::right_place(const TilePair&) const;
template void PlaneExecutor<double>::pack(const Run&);
template void PlaneExecutor<double>::pack_planes(NodeId, const Placed&, bool);
template void PlaneExecutor<double>::find_rows(NodeId, const Placed&, std::size_t, Index, Index,
                                               const double**) const;
template void PlaneExecutor<double>::choose_rows(const Run&, const Stack&);

}  // namespace widelimit
