#pragma once

#include <vector>

#include "widelimit/network/layer.hpp"
#include "widelimit/network/window.hpp"

namespace widelimit::layers {

/// The window of a pooling, and its treatment of the border.
struct PoolingOptions {
  std::vector<Index> window;        ///< One size >= 1 for each axis.
  std::vector<Index> strides = {};  ///< Empty: the window.
  Padding padding = Padding::valid;
  /// For a mean with `same` padding: divide by the positions that a window sees, not by the whole window, in which
  /// padded positions count as zeros.
  bool normalize_edges = false;
};

/// Mean over windows of positions: K' = mean of K over the pairs of positions of two windows, T' likewise; the divisor
/// is the whole window, padding included, unless edges are normalised. Circular padding and normalised edges cost as
/// much as positions_map(), the others a few operations for each entry. With masks, a position after a window counts
/// if the one in the window's middle does, floor((size - 1) / 2) of each axis; masked ones are zeros, but count in
/// the divisor. ArgumentError for bad options; NetworkError if inputs have another number of axes or are smaller than a
/// valid window.
///
/// Source  docs/theory/kernel-recursion.md, section 2.3, for all of this header.
[[nodiscard]] Layer average_pool(const PoolingOptions& options);

/// Sum over windows of positions; otherwise as average_pool(). ArgumentError for normalize_edges.
[[nodiscard]] Layer sum_pool(const PoolingOptions& options);

/// Mean over all positions: K' = mean of K over all pairs of positions. After it there are no positions.
[[nodiscard]] Layer global_average_pool();

/// Sum over all positions: K' = sum of K over all pairs of positions.
[[nodiscard]] Layer global_sum_pool();

/// All positions side by side as one vector: K' = mean of K over the diagonal. NetworkError for inputs of unequal
/// shapes.
[[nodiscard]] Layer flatten();

}  // namespace widelimit::layers
