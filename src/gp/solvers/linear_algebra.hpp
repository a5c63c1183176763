#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "gp/checks.hpp"
#include "widelimit/matrix.hpp"

/// The few BLAS and LAPACK calls of the inference, for row-major matrices. Eigen's own products and solvers
/// are not used at this size: they run on one thread and are compiled for the baseline instruction set.
///
/// A symmetric row-major matrix is its own column-major form, so LAPACK works on it in place. What LAPACK
/// calls the lower triangle is then the row-major upper one.
namespace widelimit::gp {

enum class Transpose { no, yes };

/// `threads`, or 1 for matrices so small that threads would wait for each other longer than they work.
int useful_threads(Eigen::Index n, int threads);

/// op(a) op(b).
Matrix<double> multiply(const ConstMatrixRef& a, Transpose transpose_a, const ConstMatrixRef& b,
                        Transpose transpose_b);

/// Copies the strict upper triangle onto the lower one; in tiles, for the cache.
void mirror_upper_triangle(Matrix<double>& matrix);

/// c += scale * a a^T for symmetric c; only one triangle is computed, the result is exactly symmetric.
void add_scaled_gram(Matrix<double>& c, double scale, const ConstMatrixRef& a);

/// Columns of the unit matrix [n, n], side by side.
Matrix<double> unit_columns(Eigen::Index n, std::span<const Eigen::Index> places);

/// Cholesky factor of K + noise I, held in one triangle of the matrix it was made from.
class Cholesky {
 public:
  /// Factorizes in place. Throws NotPositiveDefinite, after computing the eigenvalues of K (several times the
  /// cost of the factorization, in the same memory).
  Cholesky(Matrix<double> gram, double noise_variance, std::string_view where);

  /// One that was computed before: upper triangular U with U^T U = K + noise I.
  explicit Cholesky(Matrix<double> factor) : factor_{std::move(factor)} {}

  /// U, with zeros below its diagonal.
  [[nodiscard]] Matrix<double> upper_factor() const;

  /// (K + noise I)^-1 b for b [n, columns].
  [[nodiscard]] Matrix<double> solve(Matrix<double> b) const;

  /// Row r becomes L^-1 times that row, L L^T = K + noise I, for rows [any, n].
  void whiten_rows(Matrix<double>& rows) const;

  /// Entries of the diagonal of (K + noise I)^-1; n^2 operations each, in blocks.
  [[nodiscard]] Vector<double> inverse_diagonal(std::span<const Eigen::Index> places) const;

  /// (K + noise I)^-1, exactly symmetric, in the memory of the factor; 2/3 n^3 operations.
  [[nodiscard]] Matrix<double> take_inverse(std::string_view where) &&;

  [[nodiscard]] double log_determinant() const;
  [[nodiscard]] Eigen::Index size() const noexcept { return factor_.rows(); }

 private:
  Matrix<double> factor_;
};

/// Eigenvalues in ascending order; row k of `vectors` is the unit eigenvector of eigenvalue k.
struct SymmetricEigen {
  Vector<double> values;
  Matrix<double> vectors;
};

/// Divide and conquer is faster; its workspace of 2 n^2 numbers passes LAPACK's 32-bit counts for n > 32766,
/// from where on relatively robust representations take over (n^2 workspace),
/// whose vectors are made orthogonal to rounding afterwards.
enum class EigenSolver { by_size, divide_and_conquer, robust_representations };

SymmetricEigen symmetric_eigen(Matrix<double> matrix, std::string_view where,
                               EigenSolver solver = EigenSolver::by_size);

/// Below this an eigenvalue of a positive semidefinite matrix cannot be told from 0: n eps times the largest
/// one.
double rank_tolerance(const Vector<double>& ascending_eigenvalues);

/// x^T K x for each column x of `columns` [n, any]; reads the upper
/// triangle of the symmetric K, n^2 operations a column.
Vector<double> quadratic_forms(const Matrix<double>& symmetric, const Matrix<double>& columns);

/// A relative regulariser with which the Cholesky factorization of an n x n matrix runs through, given its smallest
/// eigenvalue: it cancels that and exceeds the rounding errors. Empty where the mean diagonal is not positive.
std::optional<double> sufficient_regulariser(double smallest_eigenvalue, Eigen::Index n,
                                             double mean_diagonal);

}  // namespace widelimit::gp
