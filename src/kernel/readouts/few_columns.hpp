#pragma once

#include <Eigen/QR>
#include <algorithm>
#include <cstddef>
#include <vector>

#include "numerics/gemm.hpp"
#include "numerics/rows/few_columns.hpp"
#include "widelimit/matrix.hpp"
#include "widelimit/network/shape.hpp"

/// Products with matrices of few columns, from which leading outputs (leading_outputs.hpp) are found.
namespace widelimit {

/// M X or M^T X for a large M [d, d] and few columns X, by sums of 16 terms that are added up in double: sums of many
/// numbers of one sign would err by 1e-6 in float (position_rotation.hpp). 16 columns at a time; where the last are
/// fewer, zeros stand in their place.
template <typename Scalar>
Matrix<Scalar> times(numerics::Transpose transpose, const Scalar* matrix, const Matrix<Scalar>& columns) {
  const numerics::FewColumns<Scalar>& products = numerics::few_columns<Scalar>();
  const auto add = transpose == numerics::Transpose::yes ? products.add_transposed : products.add;
  constexpr auto most = static_cast<Index>(numerics::FewColumns<Scalar>::columns);
  const Index d = columns.rows();
  Matrix<Scalar> result(d, columns.cols()), some(d, most);
  Matrix<double> sums(d, most);
  for (Index first = 0; first < columns.cols(); first += most) {
    const Index count = std::min(most, columns.cols() - first);
    if (count < most) some.setZero();
    some.leftCols(count) = columns.middleCols(first, count);
    sums.setZero();
    add(matrix, static_cast<std::size_t>(d), some.data(), sums.data());
    result.middleCols(first, count) = sums.leftCols(count).template cast<Scalar>();
  }
  return result;
}

/// X Y for few columns X [d, few] and a small matrix Y.
template <typename Scalar>
Matrix<Scalar> combined(const Matrix<Scalar>& columns, const Matrix<Scalar>& turn) {
  Matrix<Scalar> result(columns.rows(), turn.cols());
  numerics::gemm(numerics::Transpose::no, numerics::Transpose::no, columns.rows(), turn.cols(), turn.rows(),
                 Scalar{1}, {columns.data(), columns.cols()}, {turn.data(), turn.cols()}, Scalar{0},
                 result.data(), turn.cols());
  return result;
}

/// X^T Y, both [d, few], by sums of 32 terms that are added up in double. Each number of it is part of everything
/// that is made of X and Y, so that its rounding error, unlike those of their entries, would not average out.
template <typename Scalar>
Matrix<double> products(numerics::MatrixView<Scalar> left, numerics::MatrixView<Scalar> right, Index d) {
  constexpr Index terms = 32;
  const Index rows = left.leading, columns = right.leading;
  Matrix<double> result = Matrix<double>::Zero(rows, columns);
  Matrix<Scalar> part(rows, columns);
  for (Index first = 0; first < d; first += terms) {
    numerics::gemm(numerics::Transpose::yes, numerics::Transpose::no, rows, columns,
                   std::min(terms, d - first), Scalar{1}, {left.data + first * rows, rows},
                   {right.data + first * columns, columns}, Scalar{0}, part.data(), columns);
    result += part.template cast<double>();
  }
  return result;
}

template <typename Scalar>
Matrix<double> products(const Matrix<Scalar>& left, const Matrix<Scalar>& right) {
  return products<Scalar>({left.data(), left.cols()}, {right.data(), right.cols()}, left.rows());
}

/// A matrix [rows, at most `most`] whose columns are found block by block. Rows lie `most` numbers apart.
template <typename Scalar>
class ColumnBlocks {
 public:
  ColumnBlocks(Index rows, Index most)
      : rows_{rows}, most_{most}, numbers_(static_cast<std::size_t>(rows * most)) {}

  void append(const Matrix<Scalar>& block) {
    for (Index row = 0; row < rows_; ++row)
      std::copy_n(&block(row, 0), block.cols(), numbers_.data() + row * most_ + count_);
    count_ += block.cols();
  }
  [[nodiscard]] Index count() const { return count_; }
  [[nodiscard]] Matrix<Scalar> all() const {
    return Eigen::Map<const Matrix<Scalar>, 0, Eigen::OuterStride<>>(numbers_.data(), rows_, count_,
                                                                     Eigen::OuterStride<>(most_));
  }

  /// X^T Y.
  [[nodiscard]] Matrix<Scalar> products_with(const Matrix<Scalar>& columns) const {
    Matrix<Scalar> result(count_, columns.cols());
    numerics::gemm(numerics::Transpose::yes, numerics::Transpose::no, count_, columns.cols(), rows_,
                   Scalar{1}, {numbers_.data(), most_}, {columns.data(), columns.cols()}, Scalar{0},
                   result.data(), columns.cols());
    return result;
  }
  /// `from` -= X shares.
  void subtract(const Matrix<Scalar>& shares, Matrix<Scalar>& from) const {
    numerics::gemm(numerics::Transpose::no, numerics::Transpose::no, rows_, from.cols(), count_, Scalar{-1},
                   {numbers_.data(), most_}, {shares.data(), from.cols()}, Scalar{1}, from.data(),
                   from.cols());
  }
  /// `target` [rows, turn.cols()] = X turn.
  void combine(const Matrix<Scalar>& turn, Scalar* target) const {
    numerics::gemm(numerics::Transpose::no, numerics::Transpose::no, rows_, turn.cols(), count_, Scalar{1},
                   {numbers_.data(), most_}, {turn.data(), turn.cols()}, Scalar{0}, target, turn.cols());
  }

 private:
  Index rows_;
  Index most_;
  Index count_ = 0;
  std::vector<Scalar> numbers_;
};

/// An orthonormal basis of the columns, in double because the columns are nearly multiples of each other.
template <typename Scalar>
Matrix<Scalar> orthonormal(const Matrix<Scalar>& columns) {
  const Eigen::HouseholderQR<Eigen::MatrixXd> factors(columns.template cast<double>());
  const Eigen::MatrixXd result =
      factors.householderQ() * Eigen::MatrixXd::Identity(columns.rows(), columns.cols());
  return result.template cast<Scalar>();
}

}  // namespace widelimit
