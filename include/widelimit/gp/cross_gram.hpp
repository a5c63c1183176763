#pragma once

#include <functional>

#include "widelimit/matrix.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit::gp {

/// The Gram matrix of test inputs with the training inputs, [rows, columns], for iterative solvers: some rows at a
/// time, in double. It need not be held as a whole.
class CrossGram {
 public:
  /// Rows first .. first + count - 1, [count, columns].
  using Rows = std::function<Matrix<double>(Index first, Index count)>;

  /// The whole matrix times x.
  using Product = std::function<Matrix<double>(const Matrix<double>& x)>;

  /// `product`: if there is a better way than by blocks of rows.
  CrossGram(Index rows, Index columns, Rows rows_of, Product product = {});

  /// A matrix in memory, float or double, which must outlive this. Implicit on purpose: functions take either.
  template <typename Derived>
  CrossGram(const Eigen::MatrixBase<Derived>& matrix)
      : CrossGram(matrix.rows(), matrix.cols(), [&matrix](Index first, Index count) -> Matrix<double> {
          return matrix.middleRows(first, count).template cast<double>();
        }) {}

  [[nodiscard]] Index rows() const noexcept { return rows_; }
  [[nodiscard]] Index columns() const noexcept { return columns_; }

  /// Some rows. ArgumentError for NaN, infinity or another shape.
  [[nodiscard]] Matrix<double> block(Index first, Index count) const;

  /// The matrix times x [columns, any].
  [[nodiscard]] Matrix<double> multiply(const Matrix<double>& x) const;

 private:
  Index rows_;
  Index columns_;
  Rows rows_of_;
  Product product_;
};

}  // namespace widelimit::gp
