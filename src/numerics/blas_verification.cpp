#include <cblas.h>
#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "numerics/blas_choice.hpp"

namespace widelimit::numerics {
namespace {

/// Row by row.
template <typename Scalar>
struct Array {
  int rows, columns;
  std::vector<Scalar> numbers;

  Array(int row_count, int column_count)
      : rows{row_count}, columns{column_count}, numbers(static_cast<std::size_t>(row_count * column_count)) {}
  [[nodiscard]] Scalar& operator()(int i, int j) {
    return numbers[static_cast<std::size_t>(i * columns + j)];
  }
  [[nodiscard]] Scalar operator()(int i, int j) const {
    return numbers[static_cast<std::size_t>(i * columns + j)];
  }
  [[nodiscard]] Scalar* data() { return numbers.data(); }
  [[nodiscard]] const Scalar* data() const { return numbers.data(); }
};

/// Numbers of both signs that no sum of a few repeats.
template <typename Scalar>
Array<Scalar> irregular(int rows, int columns, double phase) {
  Array<Scalar> result(rows, columns);
  for (int k = 0; k < rows * columns; ++k)
    result.numbers[static_cast<std::size_t>(k)] =
        static_cast<Scalar>(std::sin(phase + 0.37 * k + 1e-4 * k * k));
  return result;
}

template <typename Scalar>
Array<Scalar> transposed(const Array<Scalar>& matrix) {
  Array<Scalar> result(matrix.columns, matrix.rows);
  for (int i = 0; i < matrix.rows; ++i)
    for (int j = 0; j < matrix.columns; ++j) result(j, i) = matrix(i, j);
  return result;
}

/// left right^T in double.
template <typename Scalar>
Array<double> plain_product(const Array<Scalar>& left, const Array<Scalar>& right) {
  Array<double> result(left.rows, right.rows);
  for (int i = 0; i < left.rows; ++i)
    for (int j = 0; j < right.rows; ++j) {
      double sum = 0;
      for (int k = 0; k < left.columns; ++k)
        sum += static_cast<double>(left(i, k)) * static_cast<double>(right(j, k));
      result(i, j) = sum;
    }
  return result;
}

/// Whether numbers agree up to the rounding errors of `terms` terms of size 1. What is no number does not.
template <typename Scalar>
bool agree(const Array<Scalar>& found, const Array<double>& expected, int terms, bool lower_only = false) {
  const double bound = 8 * terms * static_cast<double>(std::numeric_limits<Scalar>::epsilon());
  for (int i = 0; i < found.rows; ++i)
    for (int j = 0; j < (lower_only ? i + 1 : found.columns); ++j)
      if (!(std::abs(static_cast<double>(found(i, j)) - expected(i, j)) <= bound)) return false;
  return true;
}

void multiply(CBLAS_TRANSPOSE a_flag, CBLAS_TRANSPOSE b_flag, const Array<float>& a, const Array<float>& b,
              int inner, Array<float>& c) {
  cblas_sgemm(CblasRowMajor, a_flag, b_flag, c.rows, c.columns, inner, 1, a.data(), a.columns, b.data(),
              b.columns, 0, c.data(), c.columns);
}
void multiply(CBLAS_TRANSPOSE a_flag, CBLAS_TRANSPOSE b_flag, const Array<double>& a, const Array<double>& b,
              int inner, Array<double>& c) {
  cblas_dgemm(CblasRowMajor, a_flag, b_flag, c.rows, c.columns, inner, 1, a.data(), a.columns, b.data(),
              b.columns, 0, c.data(), c.columns);
}

/// Lower triangle of a a^T.
void square(const Array<float>& a, Array<float>& c) {
  cblas_ssyrk(CblasRowMajor, CblasLower, CblasNoTrans, a.rows, a.columns, 1, a.data(), a.columns, 0, c.data(),
              c.columns);
}
void square(const Array<double>& a, Array<double>& c) {
  cblas_dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, a.rows, a.columns, 1, a.data(), a.columns, 0, c.data(),
              c.columns);
}

/// The triangle that is the lower one row by row is the upper one for LAPACK.
bool factorize(Array<float>& a) {
  return LAPACKE_spotrf_work(LAPACK_COL_MAJOR, 'U', a.rows, a.data(), a.rows) == 0;
}
bool factorize(Array<double>& a) {
  return LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', a.rows, a.data(), a.rows) == 0;
}

/// L X = B in place.
void solve(const Array<float>& l, Array<float>& b) {
  cblas_strsm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, b.rows, b.columns, 1,
              l.data(), l.columns, b.data(), b.columns);
}
void solve(const Array<double>& l, Array<double>& b) {
  cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, b.rows, b.columns, 1,
              l.data(), l.columns, b.data(), b.columns);
}

template <typename Scalar>
bool products_are_right(int m, int n, int k) {
  const Array<Scalar> a = irregular<Scalar>(m, k, 0.1), b = irregular<Scalar>(n, k, 0.7);
  const Array<Scalar> a_columns = transposed(a), b_columns = transposed(b);
  const Array<double> expected = plain_product(a, b);
  Array<Scalar> c(m, n);
  for (const bool a_across : {false, true})
    for (const bool b_across : {false, true}) {
      // What is not written stays no number.
      std::fill(c.numbers.begin(), c.numbers.end(), std::numeric_limits<Scalar>::quiet_NaN());
      multiply(a_across ? CblasTrans : CblasNoTrans, b_across ? CblasNoTrans : CblasTrans,
               a_across ? a_columns : a, b_across ? b_columns : b, k, c);
      if (!agree(c, expected, k)) return false;
    }
  return true;
}

/// A well-conditioned matrix is factorized, multiplied together again, and used to solve.
template <typename Scalar>
bool factors_are_right(int n, int inner) {
  const Array<Scalar> a = irregular<Scalar>(n, inner, 0.3);
  Array<double> expected = plain_product(a, a);
  Array<Scalar> l(n, n);
  square(a, l);
  if (!agree(l, expected, inner, true)) return false;
  const Scalar shift = static_cast<Scalar>(inner);
  for (int i = 0; i < n; ++i) {
    l(i, i) += shift;
    expected(i, i) += static_cast<double>(shift);
  }
  if (!factorize(l)) return false;
  for (int i = 0; i < n; ++i)
    for (int j = i + 1; j < n; ++j) l(i, j) = 0;
  Array<Scalar> back(n, n);
  multiply(CblasNoTrans, CblasTrans, l, l, n, back);
  if (!agree(back, expected, 4 * inner)) return false;
  const Array<Scalar> right = irregular<Scalar>(n, 19, 0.9);
  Array<Scalar> x = right;
  solve(l, x);
  const Array<double> again = plain_product(l, transposed(x));
  return agree(right, again, 4 * inner);
}

template <typename Scalar>
bool precision_is_right() {
  // OpenBLAS has kernels of their own for products of at most 100^3 operations; no size is a multiple of a block's.
  return products_are_right<Scalar>(37, 45, 29) && products_are_right<Scalar>(97, 109, 131) &&
         factors_are_right<Scalar>(131, 67);
}

}  // namespace

bool blas_is_right() {
  // Threads beside the calling one would need buffers of their own.
  const int threads = openblas_get_num_threads();
  openblas_set_num_threads(1);
  const bool is_right = precision_is_right<float>() && precision_is_right<double>();
  openblas_set_num_threads(threads);
  return is_right;
}

}  // namespace widelimit::numerics
