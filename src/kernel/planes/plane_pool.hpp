#pragma once

#include <array>
#include <vector>

#include "kernel/plan/geometry.hpp"
#include "kernel/plan/pair_geometry.hpp"
#include "kernel/planes/aligned_buffer.hpp"
#include "kernel/planes/plane.hpp"
#include "network/graph.hpp"
#include "numerics/rows/window_rows.hpp"

namespace widelimit {

/// Numbers that the sums of rows of a pooling need, for one kernel of a pair.
Index pool_row_sums(const PairGeometry& geometry, NodeId pool);

/// Adds the planes in front of a pooling to the pooled planes of the pairs of a tile.
///
/// The planes come in groups that agree in their offset along the last axis, so that all their rows are of
/// one length. Rows that meet in a window are added up first, whole vectors at a time. When the group ends,
/// their sums are added up along the last axis, into the pooled planes.
template <typename Scalar>
class PlanePool {
 public:
  /// From now on planes are pooled into those of `pairs` pairs, zero at first: `pooled` are the ones of the
  /// first pair, the others follow `next_pooled` numbers apart. The geometry must outlive the planes.
  void begin(const PairGeometry& geometry, const Graph& graph, NodeId pool, Index pairs,
             const Plane<Scalar>& pooled, Index next_pooled);

  /// Works out what planes add to: their offsets and positions along every axis, and their layout. A group
  /// begins with the first.
  void place(const std::array<AxisPieces, 3>& axis, const PlaneLayout& layout);

  /// Adds the placed planes of `count` pairs from `first_pair` on, one behind the other.
  void add(Index first_pair, Index count, const Plane<Scalar>& planes);

  /// Ends a group. `scratch`: room for `scratch_size` numbers, no less than a row, and a vector more.
  void end_group(Scalar* scratch, Index scratch_size);

 private:
  /// Along one axis: a pooled offset, and the windows of a piece of the plane that are added to it.
  struct AxisSums {
    Index offset;
    Index first;  ///< Of the piece.
    Index taps;
    Index extent;
    Index piece_start;
    Index piece_extent;
  };
  /// Rows of a plane that are summed into those of a pooled offset.
  struct RowSums {
    numerics::PlaneWindows windows;
    Index source;  ///< Where they begin in the plane.
    Index target;  ///< Where in the sums of rows.
    bool adds;     ///< Another plane of the group has written there.
  };

  /// Sets sums_[axis].
  void follow(std::size_t axis, const AxisPieces& pieces);
  [[nodiscard]] RowSums row_sums_of(const AxisSums& x, const AxisSums& y, const PlaneLayout& layout);
  [[nodiscard]] Plane<Scalar> row_sums(Index pair);
  void add_columns(const AxisSums& columns, Index first_row, Index rows, Scalar* scratch, Index scratch_size);

  Window3 window_{Window{}};
  Index3 left_{}, right_{};  ///< Sizes behind the pooling.
  Index3 left_front_{}, right_front_{};
  const StoreLayout* layout_ = nullptr;
  Scalar weight_ = 1;
  Index pairs_ = 0;
  Plane<Scalar> pooled_{nullptr, nullptr};
  Index next_pooled_ = 0;

  AlignedBuffer<Scalar> buffer_;
  Index kernel_size_ = 0;  ///< Numbers of the sums of rows of one kernel of a pair.

  // Of the current group, and plane.
  bool in_group_ = false;
  std::array<std::vector<AxisSums>, 3> sums_;  ///< Along every axis.
  Index width_ = 0;                            ///< Length of its rows.
  Index plane_length_ = 0;
  std::vector<Index> begun_;  ///< At the first row of a pooled offset: its rows, once they are written.
  std::vector<RowSums> rows_;
};

}  // namespace widelimit
