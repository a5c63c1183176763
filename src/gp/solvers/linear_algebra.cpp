#include "gp/solvers/linear_algebra.hpp"

#include <cblas.h>
#include <fmt/format.h>
#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "gp/solvers/variances.hpp"
#include "numerics/blas_memory.hpp"
#include "widelimit/gp/not_positive_definite.hpp"

namespace widelimit::gp {
namespace {

using Eigen::Index;

constexpr double epsilon = std::numeric_limits<double>::epsilon();

/// Without a guard (BlasThreads) around them, the functions of this file have to see to the buffer of BLAS themselves:
/// it would ask for it for ever where the address space ends (numerics/blas_memory.hpp).
void reserve_buffer() { numerics::reserve_blas_buffers(1, 0); }

/// Beyond this n the workspace of dsyevd has more numbers than a 32-bit count can hold, see EigenSolver.
constexpr Index largest_divide_and_conquer = 32766;

blasint blas_int(Index n) { return static_cast<blasint>(n); }

blasint leading_dimension(const ConstMatrixRef& matrix) {
  return blas_int(std::max<Index>(1, matrix.outerStride()));
}

CBLAS_TRANSPOSE blas_transpose(Transpose transpose) {
  return transpose == Transpose::yes ? CblasTrans : CblasNoTrans;
}

void require_success(lapack_int info, std::string_view where, const char* routine) {
  if (info == 0) return;
  throw NumericalError(fmt::format(
      "{}: LAPACK's {} failed with info = {} (positive: no convergence; negative: wrong argument)", where,
      routine, info));
}

/// Calls a routine of LAPACK in LAPACKE's _work form, call(numbers, their count, integers, their count):
/// first to ask for the sizes of its workspace, then with that. The plain forms allocate it themselves, but
/// first look for NaN once more, with 32-bit indices that overflow from n = 46342 on.
template <typename Call>
void call_with_workspace(const Call& call, std::string_view where, const char* routine) {
  constexpr lapack_int query = -1;
  double number_count = 0;
  lapack_int integer_count = 0;
  require_success(call(&number_count, query, &integer_count, query), where, routine);
  // Left uninitialised: it can be twice as large as the matrix.
  const auto numbers = std::make_unique_for_overwrite<double[]>(static_cast<std::size_t>(number_count));
  const auto integers = std::make_unique_for_overwrite<lapack_int[]>(static_cast<std::size_t>(integer_count));
  require_success(call(numbers.get(), static_cast<lapack_int>(number_count), integers.get(), integer_count),
                  where, routine);
}

/// Divide and conquer ('V': with eigenvectors, which replace the matrix; 'N': without, destroying it) of the
/// triangle that LAPACK calls `triangle`.
void divide_and_conquer(char vectors, char triangle, Matrix<double>& matrix, Vector<double>& values,
                        std::string_view where) {
  const blasint n = blas_int(matrix.rows());
  call_with_workspace(
      [&](double* numbers, lapack_int number_count, lapack_int* integers, lapack_int integer_count) {
        return LAPACKE_dsyevd_work(LAPACK_COL_MAJOR, vectors, triangle, n, matrix.data(), n, values.data(),
                                   numbers, number_count, integers, integer_count);
      },
      where, "dsyevd");
}

/// Relatively robust representations; destroys the matrix.
void robust_representations(Matrix<double>& matrix, SymmetricEigen& eigen, std::string_view where) {
  const blasint n = blas_int(matrix.rows());
  const auto support = std::make_unique_for_overwrite<lapack_int[]>(2 * static_cast<std::size_t>(n));
  lapack_int found = 0;
  call_with_workspace(
      [&](double* numbers, lapack_int number_count, lapack_int* integers, lapack_int integer_count) {
        return LAPACKE_dsyevr_work(LAPACK_COL_MAJOR, 'V', 'A', 'L', n, matrix.data(), n, 0, 0, 0, 0, 0,
                                   &found, eigen.values.data(), eigen.vectors.data(), n, support.get(),
                                   numbers, number_count, integers, integer_count);
      },
      where, "dsyevr");
}

/// Rows that are orthonormal to some 1e-12, as relatively robust representations leave them, become so to rounding: a
/// step of Newton's method, R - (R R^T - I) R / 2. Memory of one more matrix.
void orthogonalise(Matrix<double>& rows) {
  const Index n = rows.rows();
  Matrix<double> excess = Matrix<double>::Zero(n, n);
  add_scaled_gram(excess, 0.5, rows);
  excess.diagonal().array() -= 0.5;
  // R - (R R^T - I) R / 2 is formed block of columns by block of columns, so that the workspace stays small.
  for_each_row_block(n, [&](Index first, Index count) {
    const Matrix<double> columns = rows.middleCols(first, count);
    rows.middleCols(first, count) -= multiply(excess, Transpose::no, columns, Transpose::no);
  });
}

[[noreturn]] void report_not_positive_definite(Matrix<double>& half_overwritten,
                                               const Vector<double>& diagonal, double noise_variance,
                                               Index minor, std::string_view where) {
  // The factorization has left the row-major lower triangle alone, so no second copy of the matrix is needed.
  half_overwritten.diagonal() = diagonal;
  const Index n = diagonal.size();
  Vector<double> eigenvalues(n);
  divide_and_conquer('N', 'U', half_overwritten, eigenvalues, where);
  const double mean_diagonal = diagonal.mean();
  const std::optional<double> enough = sufficient_regulariser(eigenvalues(0), n, mean_diagonal);
  const std::string remedy =
      enough ? fmt::format("a relative regulariser of {:.6g} (noise variance {:.6g}) is enough", *enough,
                           *enough * mean_diagonal)
             : "its diagonal is zero, so it cannot be a Gram matrix";
  throw NotPositiveDefinite(
      fmt::format("{}: the {} x {} Gram matrix plus noise variance {:.6g} is not positive definite in double "
                  "precision: the leading minor of order {} is not positive; the smallest eigenvalue without "
                  "noise is "
                  "{:.6g}; {}",
                  where, n, n, noise_variance, minor, eigenvalues(0), remedy),
      eigenvalues(0), enough, minor);
}

}  // namespace

int useful_threads(Index n, int threads) {
  constexpr Index smallest = 512;
  return n < smallest ? 1 : threads;
}

Matrix<double> multiply(const ConstMatrixRef& a, Transpose transpose_a, const ConstMatrixRef& b,
                        Transpose transpose_b) {
  const Index rows = transpose_a == Transpose::yes ? a.cols() : a.rows();
  const Index inner = transpose_a == Transpose::yes ? a.rows() : a.cols();
  const Index columns = transpose_b == Transpose::yes ? b.rows() : b.cols();
  Matrix<double> product(rows, columns);
  if (product.size() == 0) return product;
  reserve_buffer();
  cblas_dgemm(CblasRowMajor, blas_transpose(transpose_a), blas_transpose(transpose_b), blas_int(rows),
              blas_int(columns), blas_int(inner), 1, a.data(), leading_dimension(a), b.data(),
              leading_dimension(b), 0, product.data(), blas_int(columns));
  return product;
}

void mirror_upper_triangle(Matrix<double>& matrix) {
  constexpr Index tile = 64;
  const Index n = matrix.rows();
  for (Index row = 0; row < n; row += tile)
    for (Index column = 0; column <= row; column += tile)
      for (Index i = row; i < std::min(row + tile, n); ++i)
        for (Index j = column; j < std::min(column + tile, i); ++j) matrix(i, j) = matrix(j, i);
}

void add_scaled_gram(Matrix<double>& c, double scale, const ConstMatrixRef& a) {
  if (c.size() == 0) return;
  reserve_buffer();
  cblas_dsyrk(CblasRowMajor, CblasUpper, CblasNoTrans, blas_int(c.rows()), blas_int(a.cols()), scale,
              a.data(), leading_dimension(a), 1, c.data(), blas_int(c.cols()));
  mirror_upper_triangle(c);
}

Vector<double> quadratic_forms(const Matrix<double>& symmetric, const Matrix<double>& columns) {
  const Index n = symmetric.rows();
  if (columns.size() == 0) return Vector<double>::Zero(columns.cols());
  // With the upper triangle U, diagonal included, K = U + U^T - diag(K): half the operations of K x.
  Matrix<double> product = columns;
  reserve_buffer();
  cblas_dtrmm(CblasRowMajor, CblasLeft, CblasUpper, CblasNoTrans, CblasNonUnit, blas_int(n),
              blas_int(columns.cols()), 1, symmetric.data(), blas_int(n), product.data(),
              blas_int(columns.cols()));
  product = 2 * product - symmetric.diagonal().asDiagonal() * columns;
  return product.cwiseProduct(columns).colwise().sum().transpose();
}

Cholesky::Cholesky(Matrix<double> gram, double noise_variance, std::string_view where)
    : factor_(std::move(gram)) {
  reserve_buffer();
  const Index n = factor_.rows();
  const Vector<double> diagonal = factor_.diagonal();
  factor_.diagonal().array() += noise_variance;
  // The _work form here too, see call_with_workspace().
  const lapack_int info =
      LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', blas_int(n), factor_.data(), blas_int(n));
  if (info > 0) report_not_positive_definite(factor_, diagonal, noise_variance, info, where);
}

Matrix<double> Cholesky::solve(Matrix<double> b) const {
  // In row-major terms the factor is the upper triangular U = L^T.
  reserve_buffer();
  const blasint n = blas_int(size()), columns = blas_int(b.cols());
  cblas_dtrsm(CblasRowMajor, CblasLeft, CblasUpper, CblasTrans, CblasNonUnit, n, columns, 1, factor_.data(),
              n, b.data(), columns);
  cblas_dtrsm(CblasRowMajor, CblasLeft, CblasUpper, CblasNoTrans, CblasNonUnit, n, columns, 1, factor_.data(),
              n, b.data(), columns);
  return b;
}

void Cholesky::whiten_rows(Matrix<double>& rows) const {
  if (rows.rows() == 0) return;
  reserve_buffer();
  const blasint n = blas_int(size());
  cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, n, blas_int(rows.rows()), 1,
              factor_.data(), n, rows.data(), n);
}

Matrix<double> Cholesky::upper_factor() const { return factor_.triangularView<Eigen::Upper>(); }

Matrix<double> unit_columns(Index n, std::span<const Index> places) {
  Matrix<double> columns = Matrix<double>::Zero(n, static_cast<Index>(places.size()));
  for (std::size_t j = 0; j < places.size(); ++j) columns(places[j], static_cast<Index>(j)) = 1;
  return columns;
}

Vector<double> Cholesky::inverse_diagonal(std::span<const Index> places) const {
  Vector<double> diagonal(static_cast<Index>(places.size()));
  for_each_row_block(diagonal.size(), [&](Index first, Index count) {
    Matrix<double> rows =
        unit_columns(size(), places.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)))
            .transpose();
    whiten_rows(rows);
    diagonal.segment(first, count) = rows.rowwise().squaredNorm();
  });
  return diagonal;
}

Matrix<double> Cholesky::take_inverse(std::string_view where) && {
  reserve_buffer();
  require_success(
      LAPACKE_dpotri_work(LAPACK_COL_MAJOR, 'L', blas_int(size()), factor_.data(), blas_int(size())), where,
      "dpotri");
  mirror_upper_triangle(factor_);
  return std::move(factor_);
}

double Cholesky::log_determinant() const { return 2 * factor_.diagonal().array().log().sum(); }

SymmetricEigen symmetric_eigen(Matrix<double> matrix, std::string_view where, EigenSolver solver) {
  const Index n = matrix.rows();
  if (solver == EigenSolver::by_size)
    solver = n <= largest_divide_and_conquer ? EigenSolver::divide_and_conquer
                                             : EigenSolver::robust_representations;
  reserve_buffer();
  SymmetricEigen result{Vector<double>(n), {}};
  if (solver == EigenSolver::divide_and_conquer) {
    divide_and_conquer('V', 'L', matrix, result.values, where);
    result.vectors = std::move(matrix);
    return result;
  }
  result.vectors.resize(n, n);
  robust_representations(matrix, result, where);
  matrix = Matrix<double>();
  orthogonalise(result.vectors);
  return result;
}

double rank_tolerance(const Vector<double>& ascending_eigenvalues) {
  const Index n = ascending_eigenvalues.size();
  return static_cast<double>(n) * epsilon * std::max(0.0, ascending_eigenvalues(n - 1));
}

std::optional<double> sufficient_regulariser(double smallest_eigenvalue, Index n, double mean_diagonal) {
  if (!(mean_diagonal > 0)) return std::nullopt;
  // Cholesky's backward error is at most (n + 1) u |R^T||R| entrywise (Higham, Accuracy and Stability of
  // Numerical Algorithms, theorem 10.3), in norm at most (n + 1) u trace(K + noise I); the eigenvalue's own
  // error is granted as much. u = eps / 2, trace = n mean_diagonal (1 + regulariser).
  const double size = static_cast<double>(n);
  const double rounding = size * (size + 1) * epsilon;
  const double deficit = std::max(0.0, -smallest_eigenvalue / mean_diagonal);
  // A little more, so that the six digits of the message are enough as well.
  return (deficit + rounding * (1 + deficit)) / (1 - rounding) * (1 + 1e-5);
}

}  // namespace widelimit::gp
