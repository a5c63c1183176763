#pragma once

#include <cstddef>
#include <cstdint>

namespace widelimit::numerics {

/// Target rows as sums of some rows of a plane: row n has the terms from begin[n] to begin[n + 1] - 1.
template <typename Scalar>
struct RowTerms {
  struct Term {
    std::ptrdiff_t slab;
    std::ptrdiff_t row;
    Scalar weight;
  };
  const std::size_t* begin;  ///< [rows + 1]
  const Term* terms;
  const std::ptrdiff_t* target;  ///< [rows]: where each is, in rows.
  const std::uint8_t* adds;      ///< [rows]: 0 where the row is written for the first time.
  std::size_t rows;
};

/// Neighbouring columns after a map, at most `column_chunk` of them, and the part of the map that they read: a dense
/// matrix of rows of column_chunk numbers, one for each of the source's columns from `first` to `end` - 1.
inline constexpr std::size_t column_chunk = 16;
template <typename Scalar>
struct ColumnMap {
  const Scalar* matrix;
  std::ptrdiff_t first;
  std::ptrdiff_t end;
  std::size_t columns;
};

/// Linear maps of the rows and of the columns of planes, compiled for every instruction set and chosen at run time.
/// Every entry is a sum in the order of its terms, whatever else is
/// mapped with it; terms of weight 0 leave it as it is.
template <typename Scalar>
struct MappedRows {
  /// Rows of `size` numbers, `target_step` (whole vectors) apart in the target. Whole vectors are moved: less than one
  /// after a source row is read.
  void (*combine)(const RowTerms<Scalar>& terms, const Scalar* source, std::ptrdiff_t slab_step,
                  std::ptrdiff_t row_step, std::size_t size, Scalar* target, std::ptrdiff_t target_step);

  /// target[n target_step + k] += sum_c source[n source_step + c] matrix[c - first, k]. Nothing beyond the target's
  /// columns is touched.
  void (*map_columns)(const ColumnMap<Scalar>& map, const Scalar* source, std::ptrdiff_t source_step,
                      std::size_t rows, Scalar* target, std::ptrdiff_t target_step);
};

/// The best implementation for this machine. Scalar is float or double.
template <typename Scalar>
const MappedRows<Scalar>& mapped_rows();

}  // namespace widelimit::numerics
