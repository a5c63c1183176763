#include "widelimit/gp/kernel_operator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gp/solvers/linear_algebra.hpp"
#include "widelimit/error.hpp"

namespace widelimit::gp {

/// Serves operators that know nothing but products: a column is the product with a unit vector.
Matrix<double> KernelOperator::columns(std::span<const Index> indices) const {
  Matrix<double> chosen = Matrix<double>::Zero(size(), static_cast<Index>(indices.size()));
  for (std::size_t j = 0; j < indices.size(); ++j) chosen(indices[j], static_cast<Index>(j)) = 1;
  return multiply(chosen);
}

template <typename Scalar>
MatrixOperator<Scalar>::MatrixOperator(const Matrix<Scalar>& gram) : gram_{gram} {
  constexpr double tolerance = 1e-6;  // That of require_gram(), which takes doubles only.
  if (gram.rows() != gram.cols() || gram.rows() == 0)
    throw ArgumentError(
        fmt::format("MatrixOperator: the Gram matrix must be square with at least one row, got [{}, {}]",
                    gram.rows(), gram.cols()));
  for (Index i = 0; i < gram.rows(); ++i)
    for (Index j = 0; j <= i; ++j) {
      const double lower = gram(i, j), upper = gram(j, i);
      const double scale =
          std::sqrt(std::abs(static_cast<double>(gram(i, i)) * static_cast<double>(gram(j, j))));
      if (!std::isfinite(lower) || !(std::abs(lower - upper) <= tolerance * scale))
        throw ArgumentError(fmt::format(
            "MatrixOperator: the Gram matrix must be finite and symmetric, but entry ({}, {}) is {} and "
            "entry ({}, {}) is {} (indices from 0)",
            i, j, lower, j, i, upper));
    }
}

/// A matrix of floats is widened block by block, so that it never is in memory as doubles.
template <typename Scalar>
Matrix<double> MatrixOperator<Scalar>::multiply(const Matrix<double>& x) const {
  if constexpr (std::is_same_v<Scalar, double>) {
    return gp::multiply(gram_, Transpose::no, x, Transpose::no);
  } else {
    constexpr Index rows = 256;  // Fits the second-level cache up to some thousand columns.
    Matrix<double> product(size(), x.cols());
    for (Index first = 0; first < size(); first += rows) {
      const Index count = std::min(rows, size() - first);
      const Matrix<double> block = gram_.middleRows(first, count).template cast<double>();
      product.middleRows(first, count) = gp::multiply(block, Transpose::no, x, Transpose::no);
    }
    return product;
  }
}

template <typename Scalar>
Matrix<double> MatrixOperator<Scalar>::columns(std::span<const Index> indices) const {
  Matrix<double> chosen(size(), static_cast<Index>(indices.size()));
  for (std::size_t j = 0; j < indices.size(); ++j)
    chosen.col(static_cast<Index>(j)) = gram_.row(indices[j]).transpose().template cast<double>();
  return chosen;
}

TileOperator::TileOperator(Index n, Index side, Tile tile) : n_{n}, side_{side}, tile_{std::move(tile)} {
  if (n < 1 || side < 1)
    throw ArgumentError(
        fmt::format("TileOperator: expected n and side to be positive, got n = {}, side = {}", n, side));
}

Matrix<double> TileOperator::tile(Index row, Index column) const {
  const Index rows = std::min(side_, n_ - row), columns = std::min(side_, n_ - column);
  Matrix<double> tile = tile_(row, rows, column, columns);
  if (tile.rows() != rows || tile.cols() != columns)
    throw ArgumentError(fmt::format("TileOperator: expected the tile at ({}, {}) as [{}, {}], got [{}, {}]",
                                    row, column, rows, columns, tile.rows(), tile.cols()));
  if (!tile.allFinite())
    throw NumericalError(
        fmt::format("TileOperator: the tile at ({}, {}) holds NaN or infinity", row, column));
  return tile;
}

/// Tiles on and above the diagonal are asked for once each; off it they also serve as their mirror images.
Matrix<double> TileOperator::multiply(const Matrix<double>& x) const {
  Matrix<double> product = Matrix<double>::Zero(n_, x.cols());
  for (Index row = 0; row < n_; row += side_)
    for (Index column = row; column < n_; column += side_)
      add_tile_product(product, tile(row, column), row, column, x);
  return product;
}

void add_tile_product(Matrix<double>& product, const Matrix<double>& tile, Index row, Index column,
                      const Matrix<double>& x) {
  product.middleRows(row, tile.rows()) +=
      gp::multiply(tile, Transpose::no, x.middleRows(column, tile.cols()), Transpose::no);
  if (row == column) return;
  product.middleRows(column, tile.cols()) +=
      gp::multiply(tile, Transpose::yes, x.middleRows(row, tile.rows()), Transpose::no);
}

Vector<double> TileOperator::diagonal() const {
  Vector<double> diagonal(n_);
  for (Index row = 0; row < n_; row += side_) {
    const Matrix<double> k = tile(row, row);
    diagonal.segment(row, k.rows()) = k.diagonal();
  }
  return diagonal;
}

template class MatrixOperator<float>;
template class MatrixOperator<double>;

}  // namespace widelimit::gp
