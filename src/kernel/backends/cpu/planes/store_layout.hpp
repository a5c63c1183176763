#pragma once

#include <array>
#include <vector>

#include "kernel/plan/demand.hpp"
#include "kernel/plan/geometry.hpp"

namespace widelimit {

/// How the demanded entries of a kept node lie in memory: as a d x d' matrix, or as one plane after the other. The
/// offset along the last axis is outermost, so that the rows of all planes that agree in it form one block of equally
/// long rows.
class StoreLayout {
 public:
  StoreLayout() = default;
  static StoreLayout planes(const Index3& left, const Index3& right, const Offsets& offsets);
  static StoreLayout matrix(const Index3& left, const Index3& right);

  [[nodiscard]] bool is_matrix() const { return is_matrix_; }
  [[nodiscard]] Index size() const { return size_; }
  [[nodiscard]] Index left_positions() const { return product(left_); }
  [[nodiscard]] Index right_positions() const { return product(right_); }

  /// Where the entries of a plane are: entry (i, j, k) at start + i step[0] + j step[1] + k step[2].
  struct PlanePlace {
    Index start;
    Index3 step;
  };
  /// Inline: a box that has just been put together from single numbers would be waited for when a call reads it as
  /// vectors.
  [[nodiscard]] PlanePlace place(const Box& box) const {
    if (!is_matrix_)
      return {row_start(first_row({box.offset[0], box.offset[1]}), box.offset[2]),
              {box.extent[1] * box.extent[2], box.extent[2], 1}};
    const Index columns = product(right_);
    const Index3 last{box.origin[0] + box.offset[0], box.origin[1] + box.offset[1],
                      box.origin[2] + box.offset[2]};
    return {
        position_number(box.origin, left_) * columns + position_number(last, right_),
        {left_[1] * left_[2] * columns + right_[1] * right_[2], left_[2] * columns + right_[2], columns + 1}};
  }
  /// The place of left position a and right position b.
  [[nodiscard]] Index entry(const Index3& a, const Index3& b) const;

  // True if planes with this offset along an axis are stored.
  [[nodiscard]] bool contains(std::size_t axis, Index offset) const { return number(axis, offset) >= 0; }
  /// The number of rows of a block.
  [[nodiscard]] Index rows() const { return rows_; }
  /// The first row, in every block, of the planes with these offsets along the first two axes.
  [[nodiscard]] Index first_row(const std::array<Index, 2>& offset) const {
    return first_row_[static_cast<std::size_t>(number(0, offset[0]) * count_[1] + number(1, offset[1]))];
  }
  /// Where a row of the block of an offset along the last axis begins.
  [[nodiscard]] Index row_start(Index row, Index last_offset) const {
    const Block& block = blocks_[static_cast<std::size_t>(number(2, last_offset))];
    return block.start + row * block.row_length;
  }

 private:
  /// The planes that agree in their offset along the last axis.
  struct Block {
    Index start;
    Index row_length;
  };

  /// The number of an offset among those along an axis; -1 if it is not stored.
  [[nodiscard]] Index number(std::size_t axis, Index offset) const {
    if (offset <= -left_[axis] || offset >= right_[axis]) return -1;
    return number_[axis][static_cast<std::size_t>(offset + left_[axis] - 1)];
  }

  bool is_matrix_ = false;
  Index3 left_{0, 0, 0};
  Index3 right_{0, 0, 0};
  Index size_ = 0;
  std::array<std::vector<Index>, 3> number_;  ///< [axis][offset + left - 1]
  std::array<Index, 3> count_{0, 0, 0};
  std::vector<Index> first_row_;  ///< [offsets along the first two axes]
  std::vector<Block> blocks_;     ///< [offset along the last axis]
  Index rows_ = 0;
};

}  // namespace widelimit
