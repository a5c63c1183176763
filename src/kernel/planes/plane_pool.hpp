#pragma once

#include <array>
#include <vector>

#include "kernel/planes/pair_layout.hpp"
#include "kernel/planes/plane.hpp"
#include "kernel/planes/plane_layout.hpp"
#include "numerics/rows/window_rows.hpp"

namespace widelimit {

/// Numbers that the sums of rows of a pooling need, for a tile of so many pairs.
[[nodiscard]] Index pool_row_sums(const PairLayout& pair, NodeId pool, Index pairs);

/// Along one axis: a pooled offset, and the windows of a piece of a plane that are added to it.
struct PoolWindows {
  Index offset;
  Index first;  ///< Of the piece.
  Index taps;
  Index extent;
  Index piece_start;
  Index piece_extent;
};

/// A pooling between two inputs: which offsets lead to which.
class PoolGeometry {
 public:
  /// The layout must outlive this.
  PoolGeometry(const PairLayout& pair, NodeId pool);

  /// All pooled offsets, of those that are kept, that pieces of a plane add to.
  void follow(std::size_t axis, const AxisPieces& pieces, std::vector<PoolWindows>& windows) const;

  [[nodiscard]] Index stride(std::size_t axis) const { return window_.stride[axis]; }
  [[nodiscard]] const StoreLayout& layout() const { return *layout_; }
  /// That of an entry in the pooled one.
  [[nodiscard]] double weight() const;

 private:
  Window3 window_;
  PoolKind kind_;
  Index3 left_, right_;  ///< Sizes after the pooling.
  Index3 left_front_, right_front_;
  const StoreLayout* layout_;
};

/// Adds the planes before a pooling to the pooled planes of the pairs of a tile.
///
/// The planes come in groups that agree in their offset along the last axis, so that all their rows are of
/// one length. Rows that meet in a window are added up first, whole vectors at a time. When the group ends,
/// their sums are added up along the last axis, into the pooled planes.
template <typename Scalar>
class PlanePool {
 public:
  /// Pools into the planes of pairs: `pooled` are the ones of the first pair, the others follow one store
  /// further each. `row_sums`: room for pool_row_sums() numbers. The layout must outlive the pool.
  PlanePool(const PairLayout& pair, NodeId pool, const Plane<Scalar>& pooled, Scalar* row_sums);

  /// Sets the pooled planes of so many pairs to zero, which the planes to come belong to.
  void begin_tile(Index pairs);

  /// Works out what planes add to: their offsets and positions along every axis, and their layout. A group
  /// begins with the first.
  void place(const std::array<AxisPieces, 3>& axis, const PlaneLayout& layout);

  /// Adds the placed planes of `count` pairs from `first_pair` on, one after the other.
  void add(Index first_pair, Index count, const Plane<Scalar>& planes);

  /// Ends a group. `scratch`: room for `scratch_size` numbers, no less than a row, and a vector more.
  void end_group(Scalar* scratch, Index scratch_size);

 private:
  /// Rows of a plane that are summed into those of a pooled offset.
  struct RowSums {
    numerics::PlaneWindows windows;
    Index source;  ///< Where they begin in the plane.
    Index target;  ///< Where in the sums of rows.
    bool adds;     ///< Another plane of the group has written there.
  };

  /// The planes that agree in their offset along the last axis, and the current one.
  struct Group {
    bool is_open = false;
    std::array<std::vector<PoolWindows>, 3> windows;  ///< Along every axis.
    Index width = 0;                                  ///< Length of its rows.
    Index plane_length = 0;
    std::vector<Index> begun;  ///< At the first row of a pooled offset: its rows, once they are written.
    std::vector<RowSums> rows;
  };

  [[nodiscard]] RowSums row_sums_of(const PoolWindows& x, const PoolWindows& y, const PlaneLayout& layout);
  [[nodiscard]] Plane<Scalar> row_sums(Index pair) const;
  void add_columns(const PoolWindows& columns, Index first_row, Index rows, Scalar* scratch,
                   Index scratch_size);

  PoolGeometry pool_;
  Scalar weight_;
  Index pairs_ = 0;
  Plane<Scalar> pooled_;
  Index next_pooled_;
  Scalar* row_sums_;
  Index kernel_size_;  ///< Numbers of the sums of rows of one kernel of a pair.
  Group group_;
};

}  // namespace widelimit
