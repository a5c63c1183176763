#pragma once

#include <array>
#include <cstddef>

#include "widelimit/numerics/dual.hpp"

namespace widelimit::numerics {

/// Taps of a one-dimensional window: entries i + first + t * step, t < count.
struct Taps {
  std::ptrdiff_t first;
  std::ptrdiff_t step;
  std::size_t count;
};

/// A window as a product of windows along axes, and what a layer does with its sum.
struct Convolution {
  std::array<Taps, 3> axes;
  std::size_t axis_count;  ///< 1 to 3
  double scale;
  double bias;
};

/// Rows of numbers, `step` apart.
template <typename Scalar>
struct RowBlock {
  const Scalar* first;
  std::ptrdiff_t step;
  std::size_t size;  ///< Numbers in a row.
};

/// A sparse matrix: row a has the entries begin[a] to begin[a + 1] - 1, each of a column and a weight.
template <typename Scalar>
struct SparseMatrix {
  const std::ptrdiff_t* begin;  ///< [rows + 1]
  const std::ptrdiff_t* columns;
  const Scalar* weights;
  std::size_t rows;
};

/// Linear operations on rows of numbers, compiled for every instruction set and chosen at run time. Every
/// entry of a result is computed by the same operations wherever it stands in its row, so that results do not
/// depend on how entries are cut into rows. Rows do not overlap, and nothing beyond a row is touched, unless
/// said otherwise.
template <typename Scalar>
struct LinearRows {
  /// nngp *= left[0] right[0], and ntk likewise if there is one.
  void (*scale)(const DualRow<Scalar>& row);

  /// target[i] = factor sum_{k < count} left[k][i] right[k][i].
  void (*product_sum)(const Scalar* const* left, const Scalar* const* right, std::size_t count, Scalar factor,
                      Scalar* target, std::size_t size);

  /// The same for every left input with every right one, `count` rows each:
  ///     targets[a rights + b][i] = factor sum_{k < count} left[a count + k][i] right[b count + k][i].
  /// A number loaded serves several results.
  void (*product_sums)(const Scalar* const* left, std::size_t lefts, const Scalar* const* right,
                       std::size_t rights, std::size_t count, Scalar factor, Scalar* const* targets,
                       std::size_t size);

  /// Sums over a window, one axis after the other, with weights and bias:
  ///     nngp[i] = scale sum source_nngp + bias,   ntk[i] = nngp[i] + scale sum source_ntk.
  /// The ntk pointers may be null: a source's that is zero, or both. Scratch rows are needed by two axes
  /// (one) and three (two). With a single axis and a single tap at 0 the sources may be the targets. Up to a
  /// vector more than the taps reach is read on both sides of the sources.
  void (*convolve)(const Convolution& convolution, const Scalar* source_nngp, const Scalar* source_ntk,
                   Scalar* const* scratch, Scalar* nngp, Scalar* ntk, std::size_t size);

  /// Copies `rows` rows of `row_size` numbers, source_step apart, to places target_step >= row_size apart;
  /// the numbers between them become zero. Reads and writes less than row_padding numbers more after a row.
  void (*pack)(const Scalar* source, std::ptrdiff_t source_step, std::size_t rows, std::size_t row_size,
               Scalar* target, std::size_t target_step);

  /// The same for rows in two pieces, of which the second begins `second_start` after the first.
  void (*pack_pieces)(const RowBlock<Scalar>& first, const RowBlock<Scalar>& second, std::size_t second_start,
                      std::size_t rows, Scalar* target, std::size_t target_step);

  /// target[i] = factors[0] first[i] + factors[1] second[i].
  void (*weighted_sum)(const Scalar* first, const Scalar* second, const std::array<Scalar, 2>& factors,
                       Scalar* target, std::size_t size);

  /// target[a size + i] = sum of weight source[column size + i] over the entries of row a: a sparse matrix times one of
  /// rows of `size` numbers.
  void (*sparse_product)(const SparseMatrix<Scalar>& matrix, const Scalar* source, std::size_t size,
                         Scalar* target);

  /// target[i] += factor source[i].
  void (*add)(const Scalar* source, Scalar factor, Scalar* target, std::size_t size);

  /// Sum of the entries, in lanes of the row's precision: meant for rows as short as a plane.
  double (*sum)(const Scalar* source, std::size_t size);

  /// Sum of products of two rows.
  double (*dot)(const Scalar* left, const Scalar* right, std::size_t size);

  /// False if some entry is infinite or NaN.
  bool (*all_finite)(const Scalar* source, std::size_t size);
};

/// The best implementation for this machine. Scalar is float or double.
template <typename Scalar>
const LinearRows<Scalar>& linear_rows();

}  // namespace widelimit::numerics
