#pragma once

#include <array>
#include <vector>

#include "kernel/plan/demand.hpp"
#include "kernel/plan/geometry.hpp"
#include "kernel/plan/program.hpp"

namespace widelimit {

/// How the demanded entries of a kept node lie in memory: a d x d' matrix; or one plane behind the other, the
/// offset along the last axis outermost, so that the rows of all planes that agree in it form one block.
class StoreLayout {
 public:
  StoreLayout() = default;
  static StoreLayout planes(const Index3& left, const Index3& right, const Offsets& offsets);
  static StoreLayout matrix(const Index3& left, const Index3& right);

  [[nodiscard]] bool is_matrix() const { return is_matrix_; }
  [[nodiscard]] Index size() const { return size_; }
  [[nodiscard]] Index left_positions() const { return product(left_); }
  [[nodiscard]] Index right_positions() const { return product(right_); }

  /// Where the entries of a plane lie: entry (i, j, k) at start + i step[0] + j step[1] + k step[2].
  struct PlanePlace {
    Index start;
    Index3 step;
  };
  /// Inline: a box that was just put together from numbers would be waited for when it is read as vectors.
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
  /// The entry of left position a and right position b.
  [[nodiscard]] Index entry(const Index3& a, const Index3& b) const;

  // Of planes.
  /// True if planes with this offset along an axis are here.
  [[nodiscard]] bool contains(std::size_t axis, Index offset) const { return number(axis, offset) >= 0; }
  /// Rows of a block.
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
  /// The planes of an offset along the last axis.
  struct Block {
    Index start;
    Index row_length;
  };

  /// Of an offset among those along an axis, -1 if it is not here.
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

/// How the offset of an instruction follows from its run's root's: stride times that, and shift.
struct OffsetMap {
  Index3 stride{1, 1, 1};
  Index3 shift{0, 0, 0};

  [[nodiscard]] bool operator==(const OffsetMap&) const = default;
};

/// Of every instruction of a run, for nodes of these sizes.
std::vector<OffsetMap> offset_maps(const Program& program, const Run& run,
                                   const std::vector<Index3>& left_sizes,
                                   const std::vector<Index3>& right_sizes);

/// Of a plane step's run.
struct RunGeometry {
  /// The farthest shift, along each axis, of its same-padded convolutions.
  Index3 guard{0, 0, 0};
  /// Planes of complementary offsets are laid out as one. The gaps between them are the root's guards, times
  /// the stride: so a window with a stride finds every piece where it expects it.
  bool complements = false;
  std::vector<OffsetMap> maps;  ///< [instruction]
  /// The demanded offsets of the root along every axis in the order of execution.
  std::array<std::vector<AxisOffsets>, 3> offsets{};

  /// Between the planes of complementary offsets of an instruction.
  [[nodiscard]] Index gap(std::size_t instruction, std::size_t axis) const {
    return maps[instruction].stride[axis] * guard[axis];
  }
};

/// Everything that depends on the shapes of a pair of inputs, but not on their values.
struct PairGeometry {
  PairShapes shapes;
  std::vector<Index3> left_sizes;  ///< shapes.left of every node, with three axes.
  std::vector<Index3> right_sizes;
  std::vector<Offsets> demanded;
  std::vector<StoreLayout> layouts;  ///< Of kept nodes.
  std::vector<Index>
      store_offset;             ///< Where a kept node's nngp begins in the pair's store; the ntk follows it.
  std::vector<bool> keeps_ntk;  ///< Of kept nodes; that of an input is zero and mostly not written down.
  Index store_size = 0;         ///< Numbers a pair.
  Index matrix_size = 0;        ///< Those of matrices, and of what pair stages read.
  Index plane_front = 0;        ///< Margin in front of the planes in a slot.
  Index plane_capacity = 0;     ///< Numbers of the largest plane, or stack of planes, with guards.
  Index strip_capacity = 0;     ///< Numbers of the largest strip (see PlaneExecutor), for one input.
  Index row_capacity = 0;       ///< Numbers of the longest row of a plane without gaps, padded.
  std::vector<RunGeometry> runs;  ///< Of each step.

  /// Covariance entries that are demanded of a node.
  [[nodiscard]] double entries(NodeId node) const;
  /// True if planes of a run share enough for strips to pay.
  [[nodiscard]] bool uses_strips(NodeId root) const {
    return demanded[root].axis[0].size() * demanded[root].axis[1].size() > 2;
  }
};

/// Small planes of several pairs are stacked one behind the other, up to this many numbers: the calls cost
/// less an entry, and all planes of a run still fit into the first-level cache.
inline constexpr Index stacked_numbers = 1024;

enum class Kernel { nngp_only, with_ntk };

/// See RunGeometry::guard.
Index3 run_guard(const Program& program, const Run& run);

PairGeometry make_geometry(const Program& program, const Shape& left, const Shape& right, Purpose purpose,
                           Kernel kernel, bool demand_everything);

}  // namespace widelimit
