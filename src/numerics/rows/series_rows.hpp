#pragma once

#include <array>
#include <cstddef>

#include "widelimit/numerics/dual.hpp"

namespace widelimit::numerics {

/// The series may stop after any of these numbers of stored terms that leaves a small enough rest.
constexpr std::array<std::size_t, 8> series_truncations = {6, 10, 14, 18, 24, 32, 44, 64};

/// Auxiliary arrays of a Hermite series, by position. After these stand the coefficients of the derivative, one a term,
/// and then, where SeriesDual says that the value `rises` otherwise, those of the value.
struct SeriesArrays {
  static constexpr std::size_t variance = 0;
  static constexpr std::size_t inverse_deviation = 1;  ///< 1 / sqrt(p); 0 for p = 0.
  static constexpr std::size_t mean = 2;
  static constexpr std::size_t reach = 3;  ///< A truncation serves |rho| up to the product of two.
  static constexpr std::size_t coefficients = reach + series_truncations.size();
};

/// A Hermite series of stored orders k_j in rho = c / sqrt(pq):
///     derivative = sum_j left_j right_j rho^k_j,  value = mean mean' + c sum_j left'_j right'_j rho^k_j / (k_j + 1),
/// with left' = left unless it rises.
template <typename Scalar>
struct SeriesDual {
  std::array<Scalar, series_truncations.back()> inverse_orders;  ///< 1 / (k_j + 1)
  bool first_skips;                                              ///< k_1 - k_0 is 2, not 1.
  bool others_skip;                                              ///< Later orders differ by 2, not 1.
  bool rises;
};

/// A part of a row.
struct SeriesPart {
  std::size_t begin;
  std::size_t size;
};

/// Vectorised sums of such series. Every entry takes its own number of terms: its bits do not depend on its neighbours.
template <typename Scalar>
struct SeriesRows {
  /// Entries that no truncation serves are left as they are, and their places in the row written to hard[size]; returns
  /// their number. What is not a number counts as served, and stays so.
  std::size_t (*apply)(const SeriesDual<Scalar>& dual, const DualRow<Scalar>& row, SeriesPart part,
                       std::size_t* hard);
  /// out[k] = sum_m weights[m] table[m * stride + k] for k < columns, m < rows.
  void (*add_rows)(const Scalar* weights, std::size_t rows, const Scalar* table, std::size_t stride,
                   std::size_t columns, Scalar* out);
};

/// The best implementation for this machine. Scalar is float or double.
template <typename Scalar>
const SeriesRows<Scalar>& series_rows();

}  // namespace widelimit::numerics
