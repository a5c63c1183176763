#include "kernel/planes/plane_pool.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "kernel/planes/plane_windows.hpp"
#include "kernel/planes/vector_padding.hpp"

namespace widelimit {

Index pool_row_sums(const PairGeometry& geometry, NodeId pool) {
  return geometry.layouts[pool].rows() * geometry.row_capacity;
}

template <typename Scalar>
void PlanePool<Scalar>::begin(const PairGeometry& geometry, const Graph& graph, NodeId pool, Index pairs,
                              const Plane<Scalar>& pooled, Index next_pooled) {
  const Node& node = graph.nodes[pool];
  const auto& operation = std::get<PoolNode>(node.operation);
  const NodeId input = node.inputs[0];
  window_ = Window3(operation.window);
  left_ = geometry.left_sizes[pool];
  right_ = geometry.right_sizes[pool];
  left_front_ = window_.front(geometry.left_sizes[input]);
  right_front_ = window_.front(geometry.right_sizes[input]);
  layout_ = &geometry.layouts[pool];
  const auto entries = static_cast<Scalar>(product(window_.size));
  weight_ = operation.kind == PoolKind::sum ? Scalar{1} : 1 / (entries * entries);
  pairs_ = pairs;
  pooled_ = pooled;
  next_pooled_ = next_pooled;
  kernel_size_ = pool_row_sums(geometry, pool);
  const Index kernels = pooled.ntk != nullptr ? 2 : 1;
  // Less than a vector in front of and behind rows is read.
  buffer_.grow(pairs * kernels * kernel_size_ + 2 * row_padding);
  begun_.assign(static_cast<std::size_t>(layout_->rows()), 0);
  in_group_ = false;
  for (Index pair = 0; pair < pairs; ++pair)
    fill_plane(pooled + pair * next_pooled, static_cast<std::size_t>(layout_->size()), Scalar{0}, Scalar{0});
}

/// The entry (a, a + delta) belongs to the windows A of a and B of a + delta; written a = s A - f + i and
/// b = s B - f' + j, delta = s (B - A) + f - f' + (j - i), so each difference e = j - i of places in the
/// window leads to one pooled offset, and i runs over those places for which j is one too.
template <typename Scalar>
void PlanePool<Scalar>::follow(std::size_t axis, const AxisPieces& pieces) {
  std::vector<AxisSums>& sums = sums_[axis];
  sums.clear();
  const Index size = window_.size[axis], stride = window_.stride[axis];
  for (std::size_t piece = 0; piece < static_cast<std::size_t>(pieces.count); ++piece)
    for (Index e = 1 - size; e < size; ++e) {
      const Index difference = pieces.offset[piece] - e - left_front_[axis] + right_front_[axis];
      if (difference % stride != 0) continue;
      const Index offset = difference / stride;
      if (!layout_->contains(axis, offset)) continue;
      const AxisRange pooled(left_[axis], right_[axis], offset);
      const Index first =
          stride * pooled.origin - left_front_[axis] + std::max<Index>(0, -e) - pieces.origin[piece];
      sums.push_back(
          {offset, first, size - std::abs(e), pooled.extent, pieces.start[piece], pieces.extent[piece]});
    }
}

template <typename Scalar>
void PlanePool<Scalar>::place(const std::array<AxisPieces, 3>& axis, const PlaneLayout& layout) {
  if (!in_group_) {
    // The sums of rows have no gap.
    AxisPieces columns = axis[2];
    columns.start[1] = columns.extent[0];
    width_ = columns.length();
    follow(2, columns);
  }
  in_group_ = true;
  plane_length_ = layout.length;
  follow(0, axis[0]);
  follow(1, axis[1]);
  rows_.clear();
  for (const AxisSums& x : sums_[0])
    for (const AxisSums& y : sums_[1]) rows_.push_back(row_sums_of(x, y, layout));
}

template <typename Scalar>
typename PlanePool<Scalar>::RowSums PlanePool<Scalar>::row_sums_of(const AxisSums& x, const AxisSums& y,
                                                                   const PlaneLayout& layout) {
  const Index row = padded(width_), first_row = layout_->first_row({x.offset, y.offset});
  Index& begun = begun_[static_cast<std::size_t>(first_row)];
  const bool adds = begun > 0;
  begun = x.extent * y.extent;
  return {.windows = {.first = {x.first, y.first, 0},
                      .stride = {window_.stride[0], window_.stride[1], 1},
                      .taps = {x.taps, y.taps, 1},
                      .source_extent = {x.piece_extent, y.piece_extent, width_},
                      .target_extent = {x.extent, y.extent, width_},
                      .source_step = {layout.stride[0], layout.stride[1]},
                      .target_step = {y.extent * row, row},
                      .gap_at = layout.gap[2],
                      .gap_size = layout.gap_size[2]},
          .source = layout.at(x.piece_start, y.piece_start),
          .target = first_row * row,
          .adds = adds};
}

template <typename Scalar>
Plane<Scalar> PlanePool<Scalar>::row_sums(Index pair) {
  Scalar* begin = buffer_.data() + row_padding;
  if (pooled_.ntk == nullptr) return {begin + pair * kernel_size_, nullptr};
  Scalar* nngp = begin + 2 * pair * kernel_size_;
  return {nngp, nngp + kernel_size_};
}

template <typename Scalar>
void PlanePool<Scalar>::add(Index first_pair, Index count, const Plane<Scalar>& planes) {
  const Plane<Scalar> pair_sums = row_sums(first_pair);
  const numerics::PlaneSteps steps{count, plane_length_, row_sums(1).nngp - row_sums(0).nngp};
  // Both kernels of a single plane in one call.
  const bool together = planes.ntk != nullptr && count == 1;
  const numerics::PlaneSteps both{2, together ? planes.ntk - planes.nngp : 0,
                                  together ? pair_sums.ntk - pair_sums.nngp : 0};
  for (const RowSums& sums : rows_) {
    const auto add_kernel = [&](const numerics::PlaneSteps& kernel_steps, const Scalar* source,
                                Scalar* target) {
      numerics::window_sums(sums.windows, kernel_steps, source + sums.source,
                            sums.adds ? target + sums.target : nullptr, target + sums.target);
    };
    add_kernel(together ? both : steps, planes.nngp, pair_sums.nngp);
    if (planes.ntk != nullptr && !together) add_kernel(steps, planes.ntk, pair_sums.ntk);
  }
}

template <typename Scalar>
void PlanePool<Scalar>::end_group(Scalar* scratch, Index scratch_size) {
  if (!in_group_) return;
  in_group_ = false;
  for (Index begin = 0; begin < layout_->rows(); ++begin) {
    // Neighbouring pooled offsets that have been begun, together.
    Index end = begin;
    while (end < layout_->rows() && begun_[static_cast<std::size_t>(end)] > 0)
      end += std::exchange(begun_[static_cast<std::size_t>(end)], 0);
    if (end == begin) continue;
    for (const AxisSums& columns : sums_[2]) add_columns(columns, begin, end - begin, scratch, scratch_size);
    begin = end - 1;
  }
}

/// Sums along the rows: of as many rows, and of as many pairs, at once as the scratch holds.
template <typename Scalar>
void PlanePool<Scalar>::add_columns(const AxisSums& columns, Index first_row, Index rows, Scalar* scratch,
                                    Index scratch_size) {
  const Index row = padded(width_), most = scratch_size / columns.extent;
  const Index rows_at_once = std::min(rows, most), pairs_at_once = most / rows_at_once;
  numerics::PlaneWindows windows{.first = {0, 0, columns.first},
                                 .stride = {1, 1, window_.stride[2]},
                                 .taps = {1, 1, columns.taps},
                                 .source_extent = {1, rows_at_once, columns.piece_extent},
                                 .target_extent = {1, rows_at_once, columns.extent},
                                 .source_step = {0, row},
                                 .target_step = {0, columns.extent}};
  numerics::PlaneSteps steps{1, row_sums(1).nngp - row_sums(0).nngp, rows_at_once * columns.extent};
  const auto add_kernel = [&](const Scalar* sums, Scalar* pooled) {
    numerics::window_sums<Scalar>(windows, steps, sums, nullptr, scratch);
    for (Index n = 0; n < steps.planes; ++n)
      numerics::linear_rows<Scalar>().add(
          scratch + n * steps.target_plane, weight_, pooled + n * next_pooled_,
          static_cast<std::size_t>(windows.target_extent[1] * columns.extent));
  };
  for (Index pair = 0; pair < pairs_; pair += steps.planes) {
    steps.planes = std::min(pairs_at_once, pairs_ - pair);
    for (Index r = 0; r < rows; r += rows_at_once) {
      windows.source_extent[1] = windows.target_extent[1] = std::min(rows_at_once, rows - r);
      const Index start = layout_->row_start(first_row + r, columns.offset);
      const Plane<Scalar> sums = row_sums(pair) + ((first_row + r) * row + columns.piece_start),
                          pooled = pooled_ + (pair * next_pooled_ + start);
      add_kernel(sums.nngp, pooled.nngp);
      if (pooled.ntk != nullptr) add_kernel(sums.ntk, pooled.ntk);
    }
  }
}

template class PlanePool<float>;
template class PlanePool<double>;

}  // namespace widelimit
