#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "kernel/backends/cpu/planes/pair_layout.hpp"
#include "kernel/backends/cpu/planes/plane.hpp"
#include "kernel/backends/cpu/planes/plane_layout.hpp"
#include "kernel/plan/axis_mapping.hpp"
#include "numerics/rows/mapped_rows.hpp"

namespace widelimit {

/// The numbers that the sums of rows of a map need, for a tile of so many pairs.
[[nodiscard]] Index mapped_row_sums(const PairLayout& pair, NodeId node, Index pairs);

/// Adds the planes before a map of positions (PlaneMapping) to the planes after it, for the pairs of a tile.
///
/// Planes come in groups that agree in their offset along the last axis, so that all their rows have one length.
/// Their rows are mapped along the first two axes first, whole vectors at a time. When a group ends, the sums are
/// mapped along the last axis.
template <typename Scalar>
class PlaneMap {
 public:
  /// `mapped` is the plane of the first pair after the map; those of other pairs follow one store further each.
  /// `row_sums` has room for mapped_row_sums() numbers. The layout must outlive the map.
  PlaneMap(const PairLayout& pair, NodeId node, const Plane<Scalar>& mapped, Scalar* row_sums);

  /// Sets the mapped planes of so many pairs to zero.
  void begin_tile(Index pairs);

  /// Works out what the next planes add to, from their offsets and positions along every axis and their layout. The
  /// first plane begins a group.
  void place(const std::array<AxisPieces, 3>& axis, const PlaneLayout& layout);

  /// Adds the placed planes of `count` pairs from `first_pair` on, which are one after the other and have zeros in
  /// their guards.
  void add(Index first_pair, Index count, const Plane<Scalar>& planes);

  void end_group();

 private:
  /// The rows to which planes of some offsets along the first two axes are added. Row number r of `targets` adds up
  /// terms [begin[r], begin[r + 1]).
  struct Rows {
    std::vector<std::ptrdiff_t> targets;
    std::vector<std::size_t> begin{0};
    std::vector<typename numerics::RowTerms<Scalar>::Term> terms;
  };
  /// Neighbouring columns after the map, for one offset along the last axis, as a small dense matrix applied to rows.
  struct Columns {
    Index offset;
    Index start;  ///< Where the columns begin in a row.
    std::vector<Scalar> matrix;
    numerics::ColumnMap<Scalar> map;
  };
  /// The planes that agree in their offset along the last axis, and what is known of the current one.
  struct Group {
    bool is_open = false;
    Index width = 0;  ///< Length of its rows, gaps included.
    std::vector<Columns> columns;
    std::vector<std::uint8_t> begun;  ///< [row]: whether the group has written to it.
    PlaneLayout layout;
    const Rows* rows = nullptr;
    std::vector<std::uint8_t> adds;  ///< [row of rows->targets]: whether to add to it or to overwrite it.
  };
  /// The sums of rows before they are mapped along the last axis: [pair][kernel][row].
  struct RowSums {
    Scalar* begin;
    Index row_size;     ///< Numbers from a row to the next.
    Index kernel_size;  ///< Numbers from the NNGP of a pair to its NTK.
    Index kernels;      ///< 1 or 2.

    [[nodiscard]] Scalar* of(Index pair, Index kernel) const {
      return begin + (pair * kernels + kernel) * kernel_size;
    }
  };
  using RowKey = std::array<Index, 4>;

  [[nodiscard]] std::vector<AxisTerm> terms(std::size_t axis, const AxisPieces& pieces) const;
  [[nodiscard]] const Rows& rows_of(const std::array<AxisPieces, 3>& axis);
  [[nodiscard]] Rows make_rows(const std::array<AxisPieces, 3>& axis) const;
  [[nodiscard]] std::vector<Columns> make_columns(const AxisPieces& pieces) const;
  [[nodiscard]] AxisRange behind(std::size_t axis, Index offset) const {
    return {left_[axis], right_[axis], offset};
  }
  void map_rows(Index first_row, Index rows);

  std::array<AxisMapping, 3> axes_;
  Index3 left_, right_;  ///< Sizes after the map.
  const StoreLayout& layout_;
  Plane<Scalar> mapped_;
  Index next_mapped_;
  RowSums sums_;
  Index pairs_ = 0;
  std::map<RowKey, Rows> rows_;  ///< Keyed by the offsets along the first two axes and their counts.
  Group group_;
};

}  // namespace widelimit
