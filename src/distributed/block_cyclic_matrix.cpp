#include "distributed/block_cyclic_matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "widelimit/error.hpp"

namespace widelimit::distributed {
namespace {

/// How many of `count` rows or columns, dealt out in blocks, come to a place: ScaLAPACK's numroc.
Index local_count(Index count, Index block, int place, int places) {
  const Index blocks = count / block, mine = blocks / places, rest = blocks % places;
  if (place < rest) return (mine + 1) * block;
  return mine * block + (place == rest ? count % block : 0);
}

/// Entries of the largest part, that of the first rank.
double largest_part(Index rows, Index columns, int ranks, Index block) {
  const GridShape shape = GridShape::of(ranks);
  return static_cast<double>(local_count(rows, block, 0, shape.rows)) *
         static_cast<double>(local_count(columns, block, 0, shape.columns));
}

/// An entry of a range of rows or columns that lies on this rank, and where.
struct LocalPlace {
  Index in_range;
  Index local;
};

std::vector<LocalPlace> local_places(Index first, Index count, Index block, int place, int places) {
  std::vector<LocalPlace> found;
  for (Index i = 0; i < count; ++i) {
    const Index number = (first + i) / block;
    if (number % places == place) found.push_back({i, number / places * block + (first + i) % block});
  }
  return found;
}

}  // namespace

void require_local_parts(Index rows, Index columns, int ranks, Index block) {
  constexpr double most = static_cast<double>(largest_local_side) * static_cast<double>(largest_local_side);
  if (largest_part(rows, columns, ranks, block) <= most) return;
  int enough = ranks + 1;
  while (largest_part(rows, columns, enough, block) > most) ++enough;
  throw ArgumentError(fmt::format(
      "distributed: of a {} x {} matrix on {} ranks, one would hold more than {} squared entries, which the "
      "32-bit indices of ScaLAPACK cannot count; {} ranks would do",
      rows, columns, ranks, largest_local_side, enough));
}

BlockCyclicMatrix::BlockCyclicMatrix(const ProcessGrid& grid, Index rows, Index columns, Index block)
    : grid_{&grid},
      rows_{rows},
      columns_{columns},
      block_{block},
      local_rows_{local_count(rows, block, grid.row(), grid.shape().rows)},
      local_columns_{local_count(columns, block, grid.column(), grid.shape().columns)} {
  require_local_parts(rows, columns, grid.ranks(), block);
  entries_.resize(static_cast<std::size_t>(std::max<Index>(1, local_rows_ * local_columns_)));
  constexpr int dense = 1;
  descriptor_ = {dense,
                 grid.context(),
                 static_cast<int>(rows),
                 static_cast<int>(columns),
                 static_cast<int>(block),
                 static_cast<int>(block),
                 0,
                 0,
                 static_cast<int>(std::max<Index>(1, local_rows_))};
}

void BlockCyclicMatrix::fill(const Tile& tile, bool lower_triangle) {
  std::string failure;
  try {
    for (Index j = 0; j < local_columns_; j += block_)
      for (Index i = 0; i < local_rows_; i += block_) fill_block(tile, i, j, lower_triangle);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  grid_->agree(failure);
}

void BlockCyclicMatrix::fill_lower(const EachTile& tiles) {
  tiles([this](Index row, Index column, const Matrix<double>& numbers) {
    if (!numbers.allFinite())
      throw NumericalError(fmt::format(
          "distributed: the matrix must be finite, but the tile at ({}, {}) holds NaN or infinity", row,
          column));
    if (row == column)
      insert(row, column, numbers);
    else
      insert(column, row, numbers.transpose());
  });
}

void BlockCyclicMatrix::insert(Index row, Index column, const Matrix<double>& numbers) {
  const auto rows = local_places(row, numbers.rows(), block_, grid_->row(), grid_->shape().rows);
  for (const LocalPlace& j :
       local_places(column, numbers.cols(), block_, grid_->column(), grid_->shape().columns))
    for (const LocalPlace& i : rows)
      entries_[static_cast<std::size_t>(j.local * local_rows_ + i.local)] = numbers(i.in_range, j.in_range);
}

void BlockCyclicMatrix::fill_block(const Tile& tile, Index local_row, Index local_column,
                                   bool lower_triangle) {
  const Index row = global(local_row, grid_->row(), grid_->shape().rows);
  const Index column = global(local_column, grid_->column(), grid_->shape().columns);
  if (lower_triangle && row < column) return;
  const Index count = std::min(block_, rows_ - row), width = std::min(block_, columns_ - column);
  const Matrix<double> numbers = tile(row, count, column, width);
  if (numbers.rows() != count || numbers.cols() != width)
    throw ArgumentError(fmt::format("distributed: expected the tile at ({}, {}) as [{}, {}], got [{}, {}]",
                                    row, column, count, width, numbers.rows(), numbers.cols()));
  for (Index j = 0; j < width; ++j)
    for (Index i = 0; i < count; ++i) {
      if (!std::isfinite(numbers(i, j)))
        throw NumericalError(fmt::format("distributed: the matrix must be finite, but entry ({}, {}) is {}",
                                         row + i, column + j, numbers(i, j)));
      entries_[static_cast<std::size_t>((local_column + j) * local_rows_ + local_row + i)] = numbers(i, j);
    }
}

}  // namespace widelimit::distributed
