#pragma once

#include <cstddef>

#include "widelimit/numerics/dual.hpp"

namespace widelimit::numerics {

/// Taps of a one-dimensional window: entries i + first + t * step, t < count.
struct Taps {
  std::ptrdiff_t first;
  std::ptrdiff_t step;
  std::size_t count;
};

/// Linear operations on rows of numbers, compiled for every instruction set and chosen at run time. Every
/// entry of a result is computed by the same operations wherever it stands in its row, so that results do not
/// depend on how entries are cut into rows. Rows do not overlap unless said otherwise; nothing beyond a row
/// is touched.
template <typename Scalar>
struct LinearRows {
  /// nngp *= left[0] right[0], and ntk likewise if there is one.
  void (*scale)(const DualRow<Scalar>& row);

  /// target[i] = factor sum_{k < count} left[k][i] right[k][i].
  void (*product_sum)(const Scalar* const* left, const Scalar* const* right, std::size_t count, Scalar factor,
                      Scalar* target, std::size_t size);

  /// target[i] = sum over the taps of source.
  void (*window_sum)(const Scalar* source, const Taps& taps, Scalar* target, std::size_t size);

  /// The last window sum of a convolution together with weights and bias:
  ///     nngp[i] = scale sum source_nngp + bias,   ntk[i] = nngp[i] + scale sum source_ntk.
  /// The ntk pointers may be null. With a single tap at 0 the sources may be the targets.
  void (*window_affine)(const Scalar* source_nngp, const Scalar* source_ntk, const Taps& taps, Scalar scale,
                        Scalar bias, Scalar* nngp, Scalar* ntk, std::size_t size);

  /// target[i] += factor source[i].
  void (*add)(const Scalar* source, Scalar factor, Scalar* target, std::size_t size);

  /// target[i] *= factor source[i].
  void (*multiply)(const Scalar* source, Scalar factor, Scalar* target, std::size_t size);

  /// Sum of the entries, in lanes of the row's precision: meant for rows as short as a plane.
  double (*sum)(const Scalar* source, std::size_t size);

  /// Sum of products of two rows.
  double (*dot)(const Scalar* left, const Scalar* right, std::size_t size);
};

/// The best implementation for this machine. Scalar is float or double.
template <typename Scalar>
const LinearRows<Scalar>& linear_rows();

}  // namespace widelimit::numerics
