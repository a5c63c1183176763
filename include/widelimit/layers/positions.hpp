#pragma once

#include <optional>
#include <vector>

#include "widelimit/matrix.hpp"
#include "widelimit/network/layer.hpp"
#include "widelimit/network/shape.hpp"
#include "widelimit/network/window.hpp"

/// Layers that map positions linearly, every channel alike and without weights: y = M x over the positions of an input,
/// so that K' = M K M'^T and T' = M T M'^T with the maps M, M' of the two inputs. All throw ArgumentError for bad
/// options, and NetworkError, naming the layer, for inputs that the map does not fit. The layers before it are computed
/// for all pairs of positions: O(d d') numbers for each pair, and as many operations times the width of the map. Slices
/// that go forward, with begins and ends counted from the first position, cost as much as a convolution with strides.
///
/// Source  docs/theory/kernel-recursion.md, section 2.3.
namespace widelimit::layers {

/// Positions begin, begin + step, ... before end along an axis, counted as in Python slices: negative ones from the
/// end, absent ones from the border, steps below 0 backwards.
struct SliceAxis {
  std::optional<Index> begin = std::nullopt;
  std::optional<Index> end = std::nullopt;
  Index step = 1;  ///< Not 0.
};

/// The positions of a slice along each axis, with one entry for each axis.
[[nodiscard]] Layer slice(std::vector<SliceAxis> axes);

/// One position along an axis (0 the first axis), which the layer removes; negative positions count from the end.
/// For a sequence, the result is a vector: a readout of one token.
[[nodiscard]] Layer index_position(Index axis, Index position);

/// How values between positions are found: the nearest position; the triangle kernel; Keys' cubic kernel with a = -1/2.
enum class ResizeMethod { nearest, linear, cubic };

struct ImageResizeOptions {
  std::vector<Index> size;  ///< Positions >= 1 along each axis after the layer; -1: as before.
  ResizeMethod method = ResizeMethod::linear;
  /// Kernels are widened by the factor by which an axis shrinks. No effect for `nearest`.
  bool antialias = true;
};

/// Images, sequences or volumes resampled to another size, axis by axis; weights at the border are normalised, as
/// jax.image.resize does.
[[nodiscard]] Layer image_resize(const ImageResizeOptions& options);

/// Any matrix [out, in] over the positions, flattened in row-major order. After it there is one axis of `out`
/// positions, or the axes of `shape`, which has `out` positions.
[[nodiscard]] Layer positions_map(const Matrix<double>& matrix, Shape shape = {});

/// One matrix [out_i, in_i] for each axis.
[[nodiscard]] Layer positions_map(std::vector<Matrix<double>> matrices);

}  // namespace widelimit::layers
