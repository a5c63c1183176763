#pragma once

#include <vector>

#include "widelimit/layers/positions.hpp"
#include "widelimit/matrix.hpp"
#include "widelimit/network/shape.hpp"
#include "widelimit/network/window.hpp"

/// Linear maps along one axis, as bands: row a of the matrix has its entries from first[a] on, `width` of them.
namespace widelimit::layers {

struct AxisMap {
  Index columns = 0;  ///< Positions before the map.
  Index width = 1;    ///< At most `columns`; first[a] + width <= columns.
  std::vector<Index> first = {};
  std::vector<double> weights = {};  ///< [rows, width]

  [[nodiscard]] Index rows() const { return static_cast<Index>(first.size()); }
};

/// Maps of longer axes would fill the memory before anything is computed.
inline constexpr Index longest_axis = Index{1} << 20;

/// Throws ArgumentError for an axis of more positions than that.
void require_axis_length(Index size);

/// The map that leaves an axis unchanged.
AxisMap identity_map(Index size);

/// Throws ArgumentError if no position is left.
AxisMap slice_map(const SliceAxis& slice, Index size);

/// Chooses one position. Throws ArgumentError unless -size <= position < size; negative positions are counted from
/// the end.
AxisMap position_map(Index position, Index size);

AxisMap resize_map(Index size, Index new_size, ResizeMethod method, bool antialias);

/// Position i goes to position (front + stride i) mod `new_size`; the others are 0.
AxisMap spread_map(Index size, Index stride, Index front, Index new_size);

/// Sums over the windows of `window` along its axis `axis`, each divided by `divisor`. If that is 0, each is divided
/// by the number of positions that the window sees.
AxisMap pool_map(Index size, const Window& window, std::size_t axis, Index divisor);

/// The entries of a matrix, with a band that is just wide enough.
AxisMap matrix_map(const Matrix<double>& matrix);

}  // namespace widelimit::layers
