#pragma once

#include <cstddef>

namespace widelimit::numerics {

/// Products of a large square matrix with few columns. A matrix product of BLAS copies the matrix first, which here
/// takes longer than to multiply it.
template <typename Scalar>
struct FewColumns {
  static constexpr std::size_t columns = 16;
  /// So many terms are summed in Scalar, in their order; these sums are added up in double.
  static constexpr std::size_t terms = 16;

  /// sums [size][columns] += M X of the matrix M [size][size] and X [size][columns], each row by row.
  void (*add)(const Scalar* matrix, std::size_t size, const Scalar* x, double* sums);

  /// sums [size][columns] += M^T X.
  void (*add_transposed)(const Scalar* matrix, std::size_t size, const Scalar* x, double* sums);
};

/// The best implementation for this machine. Scalar is float or double.
template <typename Scalar>
const FewColumns<Scalar>& few_columns();

}  // namespace widelimit::numerics
