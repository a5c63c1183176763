#include "widelimit/gp/stored_operator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "gp/solvers/linear_algebra.hpp"
#include "numerics/blas_threads.hpp"
#include "numerics/rows/linear_rows.hpp"
#include "numerics/tasks.hpp"
#include "widelimit/error.hpp"

namespace widelimit::gp {

using store::StoredGram;
using store::TileGrid;
using store::TileIndex;

StoredOperator::StoredOperator(std::shared_ptr<const StoredGram> gram, std::string array, int threads)
    : gram_{std::move(gram)},
      array_{std::move(array)},
      threads_{numerics::resolve_threads(threads, "StoredOperator")} {
  if (!gram_->grid().is_symmetric())
    throw ArgumentError(
        "StoredOperator: expected the store of a symmetric Gram matrix, got one of two batches");
  gram_->require_array(array_);
}

Index StoredOperator::size() const { return gram_->grid().rows(); }

/// The rounding of the numbers in the store, whatever the kernels were computed in.
double StoredOperator::epsilon() const {
  return gram_->is_float() ? static_cast<double>(std::numeric_limits<float>::epsilon())
                           : std::numeric_limits<double>::epsilon();
}

Matrix<double> StoredOperator::tile(Index number) const {
  const TileIndex tile = gram_->grid().tile(number);
  // A tile that is not in the store is an error of tile() itself.
  Matrix<double> numbers = gram_->tile<double>(array_, tile);
  if (!numerics::linear_rows<double>().all_finite(numbers.data(), static_cast<std::size_t>(numbers.size())))
    throw NumericalError(
        fmt::format("StoredOperator: tile ({}, {}) of {} holds infinity", tile.row, tile.column, array_));
  return numbers;
}

template <typename Body>
void StoredOperator::for_each_tile(Index first, Index last, const Body& body) const {
  // The tasks are on all threads already, so BLAS runs on one in each of them.
  const numerics::BlasThreads guard(1, threads_);
  numerics::on_threads(threads_, [&] {
    numerics::for_each_task(last - first, RunControl{}, [&](std::ptrdiff_t i) { body(first + i); });
  });
}

Matrix<double> StoredOperator::multiply(const Matrix<double>& x) const {
  /// What a tile gives to its rows and, off the diagonal, as its mirror image to its columns.
  struct Products {
    Matrix<double> rows, columns;
  };
  const TileGrid grid = gram_->grid();
  // After this many tiles each, all threads wait, and the products held until then are added in the order of the tiles:
  // the sum does not depend on the number of threads.
  constexpr Index tiles_a_thread = 4;
  std::vector<Products> products(static_cast<std::size_t>(tiles_a_thread * threads_));
  Matrix<double> sum = Matrix<double>::Zero(size(), x.cols());
  const auto part = [](auto& matrix, InputRange range) {
    return matrix.middleRows(range.begin, range.size());
  };
  for (Index first = 0; first < grid.count(); first += std::ssize(products)) {
    const Index last = std::min<Index>(first + std::ssize(products), grid.count());
    for_each_tile(first, last, [&](Index number) {
      const Matrix<double> k = tile(number);
      const InputRange rows = grid.rows_of(grid.tile(number)), columns = grid.columns_of(grid.tile(number));
      Products& own = products[static_cast<std::size_t>(number - first)];
      own.rows = gp::multiply(k, Transpose::no, part(x, columns), Transpose::no);
      if (rows != columns) own.columns = gp::multiply(k, Transpose::yes, part(x, rows), Transpose::no);
    });
    for (Index number = first; number < last; ++number) {
      const InputRange rows = grid.rows_of(grid.tile(number)), columns = grid.columns_of(grid.tile(number));
      const Products& own = products[static_cast<std::size_t>(number - first)];
      part(sum, rows) += own.rows;
      if (rows != columns) part(sum, columns) += own.columns;
    }
  }
  return sum;
}

Vector<double> StoredOperator::diagonal() const {
  const TileGrid grid = gram_->grid();
  Vector<double> diagonal(grid.rows());
  for (Index t = 0; t < grid.tile_rows(); ++t) {
    const InputRange rows = grid.rows_of({t, t});
    diagonal.segment(rows.begin, rows.size()) = gram_->tile<double>(array_, {t, t}).diagonal();
  }
  return diagonal;
}

Matrix<double> StoredOperator::columns(std::span<const Index> indices) const {
  Matrix<double> chosen(size(), static_cast<Index>(indices.size()));
  const auto lies_in = [](Index input, InputRange range) {
    return input >= range.begin && input < range.end;
  };
  const TileGrid grid = gram_->grid();
  for_each_tile(0, grid.count(), [&](Index number) {
    const Matrix<double> k = tile(number);
    const InputRange rows = grid.rows_of(grid.tile(number)), columns = grid.columns_of(grid.tile(number));
    // Each wanted column crosses a tile in one of its columns or, as the mirror image, in one of its rows.
    for (std::size_t j = 0; j < indices.size(); ++j) {
      auto column = chosen.col(static_cast<Index>(j));
      if (lies_in(indices[j], columns))
        column.segment(rows.begin, rows.size()) = k.col(indices[j] - columns.begin);
      if (rows != columns && lies_in(indices[j], rows))
        column.segment(columns.begin, columns.size()) = k.row(indices[j] - rows.begin).transpose();
    }
  });
  return chosen;
}

CrossGram stored_cross_gram(std::shared_ptr<const StoredGram> gram, std::string array) {
  gram->require_array(array);
  const TileGrid grid = gram->grid();
  // Rows are read from the store when they are asked for, so that the whole cross matrix is never in memory.
  return {grid.rows(), grid.columns(),
          [gram = std::move(gram), array = std::move(array)](Index first, Index count) {
            return gram->rows<double>(array, {first, first + count});
          }};
}

}  // namespace widelimit::gp
