#include "kernel/backends/cpu/planes/plane_sums.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "kernel/vector_padding.hpp"
#include "numerics/rows/linear_rows.hpp"
#include "numerics/rows/piece_sums.hpp"

namespace widelimit {
namespace {

using numerics::linear_rows;

/// Some rows of a block of W, stored such that entries of one offset, W[row, row + offset], are next to each other,
/// as they are in a plane.
template <typename Scalar>
class SkewedRows {
 public:
  static constexpr Index most_rows = 32;

  /// The block has `columns` columns.
  explicit SkewedRows(Index columns)
      : columns_{columns}, entries_(static_cast<std::size_t>((columns + most_rows) * most_rows)) {}

  /// Takes rows [first, first + count) of a block, whose rows are `step` numbers apart.
  void take(const Scalar* block, Index step, Index first, Index count) {
    first_ = first;
    for (Index row = 0; row < count; ++row) {
      const Scalar* from = block + (first + row) * step;
      // With rows counted from `first`, entry (row, column) goes to line column - row + most_rows - 1, place `row`.
      Scalar* to = entries_.data() + (most_rows - 1 - row) * most_rows + row;
      for (Index column = 0; column < columns_; ++column) to[column * most_rows] = from[column];
    }
  }

  /// The entries (row, row + offset), (row + 1, row + 1 + offset), ... of the rows that were taken.
  [[nodiscard]] const Scalar* at(Index row, Index offset) const {
    return entries_.data() + (offset + first_ + most_rows - 1) * most_rows + row - first_;
  }

 private:
  Index columns_;
  Index first_ = 0;
  std::vector<Scalar> entries_;  ///< [offset from the first row + most_rows - 1, row]
};

}  // namespace

/// Adds the product of weights with `size` neighbouring entries from `begin` on.
template <typename Scalar>
void PlaneSums<Scalar>::add(const Scalar* weights, Index begin, Index size, Values& values) const {
  const auto count = static_cast<std::size_t>(size);
  values.nngp += linear_rows<Scalar>().dot(weights, planes_.nngp + begin, count);
  if (planes_.ntk != nullptr) values.ntk += linear_rows<Scalar>().dot(weights, planes_.ntk + begin, count);
}

template <typename Scalar>
typename PlaneSums<Scalar>::Values PlaneSums<Scalar>::outer(const Scalar* left, const Scalar* right) const {
  Values values;
  // No plane has more entries than the smaller input has positions.
  std::vector<Scalar> weights(static_cast<std::size_t>(padded(std::min(product(left_), product(right_)))));
  offsets_.for_each([&](const Index3& offset) {
    // Entry a of a plane has the weight u_a u'_(a + offset). The weights of a whole plane are made first, in the
    // plane's order.
    const Box box(left_, right_, offset);
    if (box.empty()) return;
    const Index columns = box.extent[2];
    Scalar* row = weights.data();
    for_each_row(box.extent, [&](Index x, Index y) {
      const Index3 a{box.origin[0] + x, box.origin[1] + y, box.origin[2]};
      const Index3 b{a[0] + offset[0], a[1] + offset[1], a[2] + offset[2]};
      const Scalar* from_left = left + position_number(a, left_);
      const Scalar* from_right = right + position_number(b, right_);
      linear_rows<Scalar>().product_sum(&from_left, &from_right, 1, Scalar{1}, row,
                                        static_cast<std::size_t>(columns));
      row += columns;
    });
    add(weights.data(), layout_.place(box).start, box.size(), values);
  });
  return values;
}

template <typename Scalar>
typename PlaneSums<Scalar>::Values PlaneSums<Scalar>::diagonal(const Scalar* left,
                                                               const Scalar* right) const {
  Values values;
  const Box box(left_, right_, {0, 0, 0});
  std::vector<Scalar> weights(static_cast<std::size_t>(box.size()));
  linear_rows<Scalar>().product_sum(&left, &right, 1, Scalar{1}, weights.data(), weights.size());
  add(weights.data(), layout_.place(box).start, box.size(), values);
  return values;
}

/// Sums W_ab K_ab over all entries; W is [d, d']. Offsets that differ only along the last axis share the blocks of W
/// between a row of left positions and a row of right positions, so each block is skewed once for all of them.
template <typename Scalar>
typename PlaneSums<Scalar>::Values PlaneSums<Scalar>::full(const Scalar* weights) const {
  Values values;
  SkewedRows<Scalar> skewed(right_[2]);
  const Index step = product(right_);
  struct Source {
    Index offset;
    Index origin;
    Index extent;
    Index next;  ///< The plane's entry that stands at the origin of the current row.
  };
  std::vector<Source> sources;
  std::vector<numerics::WeightedPiece<Scalar>> pieces;
  for (const Index x : offsets_.axis[0])
    for (const Index y : offsets_.axis[1]) {
      sources.clear();
      Box box;
      for (const Index z : offsets_.axis[2]) {
        box = Box(left_, right_, {x, y, z});
        if (!box.empty()) sources.push_back({z, box.origin[2], box.extent[2], layout_.place(box).start});
      }
      if (sources.empty()) continue;
      for (Index row = 0; row < box.extent[0] * box.extent[1]; ++row) {
        const Index3 a{box.origin[0] + row / box.extent[1], box.origin[1] + row % box.extent[1], 0};
        const Index3 b{a[0] + x, a[1] + y, 0};
        const Scalar* block = weights + position_number(a, left_) * step + position_number(b, right_);
        for (Index first = 0; first < left_[2]; first += SkewedRows<Scalar>::most_rows) {
          const Index end = std::min(first + SkewedRows<Scalar>::most_rows, left_[2]);
          skewed.take(block, step, first, end - first);
          pieces.clear();
          for (const Source& source : sources) {
            const Index from = std::max(first, source.origin),
                        to = std::min(end, source.origin + source.extent);
            if (from >= to) continue;
            const Index begin = source.next + from - source.origin;
            pieces.push_back({skewed.at(from, source.offset), planes_.nngp + begin,
                              planes_.ntk != nullptr ? planes_.ntk + begin : nullptr,
                              static_cast<std::size_t>(to - from)});
          }
          std::array<double, 2> sums{};
          numerics::piece_sums<Scalar>().add(pieces.data(), pieces.size(), sums.data());
          values.nngp += sums[0];
          values.ntk += sums[1];
        }
        for (Source& source : sources) source.next += source.extent;
      }
    }
  return values;
}

template class PlaneSums<float>;
template class PlaneSums<double>;

}  // namespace widelimit
