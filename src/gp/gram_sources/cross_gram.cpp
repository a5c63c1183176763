#include "widelimit/gp/cross_gram.hpp"

#include <utility>

#include "gp/checks.hpp"
#include "gp/solvers/linear_algebra.hpp"
#include "gp/solvers/variances.hpp"

namespace widelimit::gp {

CrossGram::CrossGram(Index rows, Index columns, Rows rows_of, Product product)
    : rows_{rows}, columns_{columns}, rows_of_{std::move(rows_of)}, product_{std::move(product)} {}

Matrix<double> CrossGram::block(Index first, Index count) const {
  Matrix<double> rows = rows_of_(first, count);
  require_shape(rows, count, columns_, "CrossGram", "the rows that were asked for");
  require_finite(rows, "CrossGram", "the cross Gram matrix (rows counted from the block's first)");
  return rows;
}

// Rows come in blocks, so that the whole cross Gram matrix never has to be in memory.
Matrix<double> CrossGram::multiply(const Matrix<double>& x) const {
  if (product_) return product_(x);
  Matrix<double> product(rows_, x.cols());
  for_each_row_block(rows_, [&](Index first, Index count) {
    product.middleRows(first, count) = gp::multiply(block(first, count), Transpose::no, x, Transpose::no);
  });
  return product;
}

}  // namespace widelimit::gp
