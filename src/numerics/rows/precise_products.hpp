#pragma once

#include <cstddef>

namespace widelimit::numerics {

/// Products of two rows that must not depend on how a matrix product adds up, and the search for the pairs
/// that need them.
template <typename Scalar>
struct PreciseProducts {
  /// Sum of products of two rows, of equal bits in either order: a few roundings of a double of the sum of
  /// absolute products, however long the rows are.
  double (*dot)(const Scalar* left, const Scalar* right, std::size_t size);

  /// products[j] = factor times the sum of products of `left` with the row that begins at right + j step, j < count:
  /// added up in double and rounded once. For few left rows, which a matrix product would copy all right rows for.
  void (*multiply_rows)(const Scalar* left, const Scalar* right, std::size_t step, std::size_t count,
                        std::size_t size, double factor, Scalar* products);

  /// True if |values[i]| > factor bounds[i] for some entry. Bounds are not negative.
  bool (*any_exceeds)(const Scalar* values, const Scalar* bounds, Scalar factor, std::size_t size);
};

/// The best implementation for this machine. Scalar is float or double.
template <typename Scalar>
const PreciseProducts<Scalar>& precise_products();

}  // namespace widelimit::numerics
