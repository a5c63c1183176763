#include "widelimit/gp/stored_operator.hpp"

#include <fmt/format.h>

#include <future>
#include <limits>
#include <utility>
#include <vector>

#include "gp/linear_algebra.hpp"
#include "numerics/rows/linear_rows.hpp"
#include "widelimit/error.hpp"

namespace widelimit::gp {

using store::StoredGram;
using store::TileGrid;
using store::TileIndex;

StoredOperator::StoredOperator(std::shared_ptr<const StoredGram> gram, std::string array)
    : gram_{std::move(gram)}, array_{std::move(array)} {
  if (!gram_->grid().is_symmetric())
    throw ArgumentError(
        "StoredOperator: expected the store of a symmetric Gram matrix, got one of two batches");
  gram_->require_array(array_);
}

Index StoredOperator::size() const { return gram_->grid().rows(); }

double StoredOperator::epsilon() const {
  return gram_->is_float() ? static_cast<double>(std::numeric_limits<float>::epsilon())
                           : std::numeric_limits<double>::epsilon();
}

/// body(tile, numbers), in order; the tile behind is read meanwhile.
template <typename Body>
void StoredOperator::for_each_tile(Body body) const {
  const TileGrid grid = gram_->grid();
  const auto read = [this](TileIndex tile) { return gram_->tile<double>(array_, tile); };
  std::future<Matrix<double>> next = std::async(std::launch::async, read, grid.tile(0));
  for (Index t = 0; t < grid.count(); ++t) {
    const Matrix<double> numbers = next.get();
    if (t + 1 < grid.count()) next = std::async(std::launch::async, read, grid.tile(t + 1));
    if (!numerics::linear_rows<double>().all_finite(numbers.data(), static_cast<std::size_t>(numbers.size())))
      throw NumericalError(fmt::format("StoredOperator: tile ({}, {}) of {} holds infinity", grid.tile(t).row,
                                       grid.tile(t).column, array_));
    body(grid.rows_of(grid.tile(t)), grid.columns_of(grid.tile(t)), numbers);
  }
}

Matrix<double> StoredOperator::multiply(const Matrix<double>& x) const {
  Matrix<double> product = Matrix<double>::Zero(size(), x.cols());
  for_each_tile([&](InputRange rows, InputRange columns, const Matrix<double>& k) {
    product.middleRows(rows.begin, rows.size()) +=
        gp::multiply(k, Transpose::no, x.middleRows(columns.begin, columns.size()), Transpose::no);
    if (rows != columns)
      product.middleRows(columns.begin, columns.size()) +=
          gp::multiply(k, Transpose::yes, x.middleRows(rows.begin, rows.size()), Transpose::no);
  });
  return product;
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
  for_each_tile([&](InputRange rows, InputRange columns, const Matrix<double>& k) {
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
  return {grid.rows(), grid.columns(),
          [gram = std::move(gram), array = std::move(array)](Index first, Index count) {
            return gram->rows<double>(array, {first, first + count});
          }};
}

}  // namespace widelimit::gp
