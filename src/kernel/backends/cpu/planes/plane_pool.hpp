#pragma once

#include <array>
#include <vector>

#include "kernel/backends/cpu/planes/pair_layout.hpp"
#include "kernel/backends/cpu/planes/plane.hpp"
#include "kernel/backends/cpu/planes/plane_layout.hpp"
#include "numerics/rows/window_rows.hpp"

namespace widelimit {

/// The numbers that the sums of rows of a pooling need, for a tile of so many pairs.
[[nodiscard]] Index pool_row_sums(const PairLayout& pair, NodeId pool, Index pairs);

/// Along one axis: a pooled offset, and the windows of a plane's piece that are added to it. Window number i begins
/// at entry first + stride * i of the piece.
struct PoolWindows {
  Index offset;
  Index first;  ///< The first window's first entry in the piece.
  Index taps;
  Index extent;
  Index piece_start;
  Index piece_extent;
};

/// A pooling between two inputs: which offsets before it lead to which offsets after it.
class PoolGeometry {
 public:
  /// The layout must outlive this.
  PoolGeometry(const PairLayout& pair, NodeId pool);

  /// Finds all pooled offsets, among those that are kept, to which the pieces of a plane are added.
  void follow(std::size_t axis, const AxisPieces& pieces, std::vector<PoolWindows>& windows) const;

  [[nodiscard]] Index stride(std::size_t axis) const { return window_.stride[axis]; }
  [[nodiscard]] const StoreLayout& layout() const { return *layout_; }
  /// The weight of an entry before the pooling in an entry after it.
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
/// Planes come in groups that agree in their offset along the last axis, so that all their rows have one length. Rows
/// that meet in a window are added up first, whole vectors at a time. When a group ends, their sums are added up
/// along the last axis, into the pooled planes.
template <typename Scalar>
class PlanePool {
 public:
  /// `pooled` is the pooled plane of the first pair; those of other pairs follow one store further each. `row_sums`
  /// has room for pool_row_sums() numbers. The layout must outlive the pool.
  PlanePool(const PairLayout& pair, NodeId pool, const Plane<Scalar>& pooled, Scalar* row_sums);

  /// Sets the pooled planes of so many pairs to zero.
  void begin_tile(Index pairs);

  /// Works out what the next planes add to, from their offsets and positions along every axis and their layout. The
  /// first plane begins a group.
  void place(const std::array<AxisPieces, 3>& axis, const PlaneLayout& layout);

  /// Adds the placed planes of `count` pairs from `first_pair` on, which are one after the other.
  void add(Index first_pair, Index count, const Plane<Scalar>& planes);

  /// Ends a group. `scratch` has room for `scratch_size` numbers and a vector more; a row must fit into it.
  void end_group(Scalar* scratch, Index scratch_size);

 private:
  /// Rows of a plane that are added to rows of a pooled offset.
  struct RowSums {
    numerics::PlaneWindows windows;
    Index source;  ///< Where the rows begin in the plane.
    Index target;  ///< Where they begin in the sums of rows.
    bool adds;     ///< Whether another plane of the group has written there.
  };

  /// The planes that agree in their offset along the last axis, and what is known of the current one.
  struct Group {
    bool is_open = false;
    std::array<std::vector<PoolWindows>, 3> windows;  ///< Along every axis.
    Index width = 0;                                  ///< Length of its rows.
    Index plane_length = 0;
    std::vector<Index> begun;  ///< [first row of a pooled offset]: its rows, once written.
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
