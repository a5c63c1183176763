#pragma once

#include <array>
#include <functional>
#include <vector>

#include "distributed/process_grid.hpp"
#include "distributed/rank_solver.hpp"

namespace widelimit::distributed {

/// Rows row .. row + rows - 1 and columns column .. column + columns - 1 of a matrix.
using Tile = std::function<Matrix<double>(Index row, Index rows, Index column, Index columns)>;

/// Side of the largest square local block: the indices of ScaLAPACK have 32 bits.
inline constexpr Index largest_local_side = 46'340;

/// ArgumentError, with the number of ranks that would do, if the part of one of `ranks` of a matrix in blocks of
/// `block` has more than 46,340 squared entries.
void require_local_parts(Index rows, Index columns, int ranks, Index block);

/// A matrix dealt out to the grid in square blocks, each rank's part being column-major.
class BlockCyclicMatrix {
 public:
  /// Zeros. Errors: require_local_parts().
  BlockCyclicMatrix(const ProcessGrid& grid, Index rows, Index columns, Index block);

  /// This rank's blocks, those with row >= column alone if `lower_triangle`. Numbers that are not finite and what
  /// `tile` throws are a NumericalError on all ranks.
  void fill(const Tile& tile, bool lower_triangle);

  /// The lower triangle, each rank taking its entries of every tile. NumericalError for numbers that are not finite.
  void fill_lower(const EachTile& tiles);

  /// body(global row, global column, entry) for each entry of this rank. A pass over all of them.
  template <typename Body>
  void for_each(Body body) {
    for (Index j = 0; j < local_columns_; ++j)
      for (Index i = 0; i < local_rows_; ++i)
        body(global(i, grid_->row(), grid_->shape().rows), global(j, grid_->column(), grid_->shape().columns),
             entries_[static_cast<std::size_t>(j * local_rows_ + i)]);
  }

  [[nodiscard]] double* data() noexcept { return entries_.data(); }
  [[nodiscard]] const double* data() const noexcept { return entries_.data(); }
  [[nodiscard]] const int* descriptor() const noexcept { return descriptor_.data(); }
  [[nodiscard]] Index rows() const noexcept { return rows_; }
  [[nodiscard]] Index columns() const noexcept { return columns_; }

 private:
  [[nodiscard]] Index global(Index local, int place, int places) const {
    return (local / block_ * places + place) * block_ + local % block_;
  }
  void insert(Index row, Index column, const Matrix<double>& numbers);
  void fill_block(const Tile& tile, Index local_row, Index local_column, bool lower_triangle);

  const ProcessGrid* grid_;
  Index rows_;
  Index columns_;
  Index block_;
  Index local_rows_;
  Index local_columns_;
  std::vector<double> entries_;
  std::array<int, 9> descriptor_{};
};

}  // namespace widelimit::distributed
