#pragma once

#include <cstddef>

namespace widelimit::numerics {

/// Some weights and the entries of two arrays that they belong to.
template <typename Scalar>
struct WeightedPiece {
  const Scalar* weights;
  const Scalar* first;
  const Scalar* second;  ///< Null in all pieces or in none.
  std::size_t size;
};

/// Weighted sums over many short pieces, compiled for every instruction set and chosen at run time.
template <typename Scalar>
struct PieceSums {
  /// Adds the weighted sums of both arrays over all pieces to sums[0] and sums[1]; in lanes of the row's precision, so
  /// that they are meant for no more entries than a plane has. The first
  /// sum does not depend on whether there is a second.
  void (*add)(const WeightedPiece<Scalar>* pieces, std::size_t count, double* sums);
};

/// The best implementation for this machine. Scalar is float or double.
template <typename Scalar>
const PieceSums<Scalar>& piece_sums();

}  // namespace widelimit::numerics
