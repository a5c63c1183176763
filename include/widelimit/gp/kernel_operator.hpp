#pragma once

#include <functional>
#include <limits>
#include <span>

#include "widelimit/matrix.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit::gp {

/// A Gram matrix K [n, n] for iterative solvers: something that multiplies. It need not be held as a whole.
class KernelOperator {
 public:
  virtual ~KernelOperator() = default;

  [[nodiscard]] virtual Index size() const = 0;

  /// K x for x [n, columns]: one pass over the matrix, whatever the number of columns.
  [[nodiscard]] virtual Matrix<double> multiply(const Matrix<double>& x) const = 0;

  /// K_ii, [n].
  [[nodiscard]] virtual Vector<double> diagonal() const = 0;

  /// These columns of K, [n, count]. By multiply() unless a class overrides it.
  [[nodiscard]] virtual Matrix<double> columns(std::span<const Index> indices) const;

  /// Machine epsilon of the type to which the entries are rounded: that of double, unless a class overrides it.
  [[nodiscard]] virtual double epsilon() const { return std::numeric_limits<double>::epsilon(); }
};

/// A Gram matrix in memory, which must outlive this; float is converted block by block, so no copy in double exists.
/// ArgumentError unless it is square, symmetric within rounding and finite.
template <typename Scalar>
class MatrixOperator final : public KernelOperator {
 public:
  explicit MatrixOperator(const Matrix<Scalar>& gram);

  [[nodiscard]] Index size() const override { return gram_.rows(); }
  [[nodiscard]] Matrix<double> multiply(const Matrix<double>& x) const override;
  [[nodiscard]] Vector<double> diagonal() const override { return gram_.diagonal().template cast<double>(); }
  [[nodiscard]] Matrix<double> columns(std::span<const Index> indices) const override;
  [[nodiscard]] double epsilon() const override {
    return static_cast<double>(std::numeric_limits<Scalar>::epsilon());
  }

 private:
  const Matrix<Scalar>& gram_;
};

/// A Gram matrix that is made or read tile by tile at every pass: tiles of a store, or kernels computed on the fly.
class TileOperator final : public KernelOperator {
 public:
  /// Rows row .. row + rows - 1 and columns column .. column + columns - 1 of K, [rows, columns]; only called for the
  /// upper triangle, one tile at a time.
  using Tile = std::function<Matrix<double>(Index row, Index rows, Index column, Index columns)>;

  /// n inputs in tiles of `side`; the last ones may be smaller. ArgumentError unless both are positive.
  TileOperator(Index n, Index side, Tile tile);

  [[nodiscard]] Index size() const override { return n_; }
  [[nodiscard]] Matrix<double> multiply(const Matrix<double>& x) const override;
  /// Takes the tiles of the diagonal.
  [[nodiscard]] Vector<double> diagonal() const override;

 private:
  [[nodiscard]] Matrix<double> tile(Index row, Index column) const;

  Index n_;
  Index side_;
  Tile tile_;
};

/// Adds to K x what a tile of the symmetric K contributes, whose first entry is K(row, column): the tile times its rows
/// of x, and off the diagonal its transpose as well. For operators whose tiles are in several hands.
/// x and product [n, columns].
void add_tile_product(Matrix<double>& product, const Matrix<double>& tile, Index row, Index column,
                      const Matrix<double>& x);

}  // namespace widelimit::gp
