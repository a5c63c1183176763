#include "kernel/backends/cpu/planes/plane_pool.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "kernel/backends/cpu/planes/plane_windows.hpp"
#include "kernel/vector_padding.hpp"

namespace widelimit {

namespace {

/// The sums of rows of one kernel of a pair.
Index kernel_row_sums(const PairLayout& pair, NodeId pool) {
  return pair.stores.layouts[pool].rows() * pair.planes.row;
}

}  // namespace

Index pool_row_sums(const PairLayout& pair, NodeId pool, Index pairs) {
  // Window sums read up to a vector before and after their rows.
  return pairs * (pair.with_ntk() ? 2 : 1) * kernel_row_sums(pair, pool) + 2 * row_padding;
}

PoolGeometry::PoolGeometry(const PairLayout& pair, NodeId pool)
    : window_{std::get<PoolNode>(pair.node(pool).operation).window},
      kind_{std::get<PoolNode>(pair.node(pool).operation).kind},
      left_{pair.geometry.left_sizes[pool]},
      right_{pair.geometry.right_sizes[pool]},
      left_front_{window_.front(pair.geometry.left_sizes[pair.input_of(pool)])},
      right_front_{window_.front(pair.geometry.right_sizes[pair.input_of(pool)])},
      layout_{&pair.stores.layouts[pool]} {}

double PoolGeometry::weight() const {
  const auto entries = static_cast<double>(product(window_.size));
  // A pooled entry is the mean over pairs of positions of two windows.
  return kind_ == PoolKind::sum ? 1 : 1 / (entries * entries);
}

/// Entry (a, a + delta) belongs to a window A of a and a window B of a + delta. With a = s A - f + i and b = s B - f'
/// + j, where s is the stride, f and f' are the paddings in front, and i and j are places in the windows, delta = s
/// (B - A) + f - f' + (j - i). Each difference e = j - i therefore leads to one pooled offset B - A, and i runs over
/// those places for which j = i + e is a place too.
void PoolGeometry::follow(std::size_t axis, const AxisPieces& pieces,
                          std::vector<PoolWindows>& windows) const {
  windows.clear();
  const Index size = window_.size[axis], step = stride(axis);
  for (std::size_t piece = 0; piece < static_cast<std::size_t>(pieces.count); ++piece)
    for (Index e = 1 - size; e < size; ++e) {
      const Index difference = pieces.offset[piece] - e - left_front_[axis] + right_front_[axis];
      if (difference % step != 0) continue;
      const Index offset = difference / step;
      if (!layout_->contains(axis, offset)) continue;
      const AxisRange pooled(left_[axis], right_[axis], offset);
      const Index first =
          step * pooled.origin - left_front_[axis] + std::max<Index>(0, -e) - pieces.origin[piece];
      windows.push_back(
          {offset, first, size - std::abs(e), pooled.extent, pieces.start[piece], pieces.extent[piece]});
    }
}

template <typename Scalar>
PlanePool<Scalar>::PlanePool(const PairLayout& pair, NodeId pool, const Plane<Scalar>& pooled,
                             Scalar* row_sums)
    : pool_(pair, pool),
      weight_{static_cast<Scalar>(pool_.weight())},
      pooled_{pooled},
      next_pooled_{pair.stores.size},
      row_sums_{row_sums + row_padding},
      kernel_size_{kernel_row_sums(pair, pool)} {}

template <typename Scalar>
void PlanePool<Scalar>::begin_tile(Index pairs) {
  pairs_ = pairs;
  group_.is_open = false;
  group_.begun.assign(static_cast<std::size_t>(pool_.layout().rows()), 0);
  for (Index number = 0; number < pairs; ++number)
    fill_plane(pooled_ + number * next_pooled_, static_cast<std::size_t>(pool_.layout().size()), Scalar{0},
               Scalar{0});
}

template <typename Scalar>
void PlanePool<Scalar>::place(const std::array<AxisPieces, 3>& axis, const PlaneLayout& layout) {
  if (!group_.is_open) {
    // The sums of rows have no gap between the pieces.
    AxisPieces columns = axis[2];
    columns.start[1] = columns.extent[0];
    group_.width = columns.length();
    pool_.follow(2, columns, group_.windows[2]);
  }
  group_.is_open = true;
  group_.plane_length = layout.length;
  pool_.follow(0, axis[0], group_.windows[0]);
  pool_.follow(1, axis[1], group_.windows[1]);
  // Every pair of pooled offsets along the first two axes has rows of its own.
  group_.rows.clear();
  for (const PoolWindows& x : group_.windows[0])
    for (const PoolWindows& y : group_.windows[1]) group_.rows.push_back(row_sums_of(x, y, layout));
}

template <typename Scalar>
typename PlanePool<Scalar>::RowSums PlanePool<Scalar>::row_sums_of(const PoolWindows& x, const PoolWindows& y,
                                                                   const PlaneLayout& layout) {
  const Index row = padded(group_.width), first_row = pool_.layout().first_row({x.offset, y.offset});
  Index& begun = group_.begun[static_cast<std::size_t>(first_row)];
  const bool adds = begun > 0;
  begun = x.extent * y.extent;
  return {.windows = {.first = {x.first, y.first, 0},
                      .stride = {pool_.stride(0), pool_.stride(1), 1},
                      .taps = {x.taps, y.taps, 1},
                      .source_extent = {x.piece_extent, y.piece_extent, group_.width},
                      .target_extent = {x.extent, y.extent, group_.width},
                      .source_step = {layout.stride[0], layout.stride[1]},
                      .target_step = {y.extent * row, row},
                      .gap_at = layout.gap[2],
                      .gap_size = layout.gap_size[2]},
          .source = layout.at(x.piece_start, y.piece_start),
          .target = first_row * row,
          .adds = adds};
}

template <typename Scalar>
Plane<Scalar> PlanePool<Scalar>::row_sums(Index pair) const {
  if (pooled_.ntk == nullptr) return {row_sums_ + pair * kernel_size_, nullptr};
  Scalar* nngp = row_sums_ + 2 * pair * kernel_size_;
  return {nngp, nngp + kernel_size_};
}

template <typename Scalar>
void PlanePool<Scalar>::add(Index first_pair, Index count, const Plane<Scalar>& planes) {
  const Plane<Scalar> pair_sums = row_sums(first_pair);
  const numerics::PlaneSteps steps{count, group_.plane_length, row_sums(1).nngp - row_sums(0).nngp};
  // Both kernels of a single plane go through one call, as if they were two planes.
  const bool together = planes.ntk != nullptr && count == 1;
  const numerics::PlaneSteps both{2, together ? planes.ntk - planes.nngp : 0,
                                  together ? pair_sums.ntk - pair_sums.nngp : 0};
  for (const RowSums& sums : group_.rows) {
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
  if (!group_.is_open) return;
  group_.is_open = false;
  for (Index begin = 0; begin < pool_.layout().rows(); ++begin) {
    // Rows of neighbouring pooled offsets that were written are added up together.
    Index end = begin;
    while (end < pool_.layout().rows() && group_.begun[static_cast<std::size_t>(end)] > 0)
      end += std::exchange(group_.begun[static_cast<std::size_t>(end)], 0);
    if (end == begin) continue;
    for (const PoolWindows& columns : group_.windows[2])
      add_columns(columns, begin, end - begin, scratch, scratch_size);
    begin = end - 1;
  }
}

/// Adds up the sums of rows along the rows: as many rows, and as many pairs, at once as the scratch can hold.
template <typename Scalar>
void PlanePool<Scalar>::add_columns(const PoolWindows& columns, Index first_row, Index rows, Scalar* scratch,
                                    Index scratch_size) {
  const Index row = padded(group_.width), most = scratch_size / columns.extent;
  const Index rows_at_once = std::min(rows, most), pairs_at_once = most / rows_at_once;
  numerics::PlaneWindows windows{.first = {0, 0, columns.first},
                                 .stride = {1, 1, pool_.stride(2)},
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
      const Index start = pool_.layout().row_start(first_row + r, columns.offset);
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
