#pragma once

#include <optional>
#include <vector>

#include "gp/solvers/spectrum.hpp"
#include "widelimit/matrix.hpp"

/// A symmetric matrix K = Q B Q^T with orthogonal Q and a B whose entries stand near the diagonal: what serves every
/// K + lambda I at once. Tridiagonal form does so too, but half of its 4/3 n^3 operations are products of the matrix
/// with a vector, bound by memory (measured: 10 Cholesky factorizations at n = 4,000); up to a band all are products of
/// matrices (2 to 4). Each B + lambda I then costs n bandwidth^2.
namespace widelimit::gp {

class BandForm {
 public:
  /// Wide enough for products at full speed, narrow enough to be cheap for every regulariser.
  static constexpr Eigen::Index default_bandwidth = 128;

  /// Reads the upper triangle and reduces in place: hand the matrix over with std::move, and no second one is held.
  /// Cost 4/3 n^3 operations.
  explicit BandForm(Matrix<double> symmetric, Eigen::Index bandwidth = default_bandwidth);

  /// Q^T x for x [n, columns]; 2 n^2 columns operations.
  [[nodiscard]] Matrix<double> to_band(Matrix<double> x) const;

  /// Q x.
  [[nodiscard]] Matrix<double> from_band(Matrix<double> x) const;

  /// B x.
  [[nodiscard]] Matrix<double> multiply_band(const Matrix<double>& x) const;

  /// Q^T as a matrix, in the memory of the reduction, so that only the band is left of this; 4/3 n^3 operations.
  [[nodiscard]] Matrix<double> take_basis();

  /// Of K, as spectrum_of() finds it of a KernelOperator, in 2 n^2 operations a probe.
  [[nodiscard]] Spectrum spectrum() const;

  [[nodiscard]] Eigen::Index size() const noexcept { return size_; }

 private:
  friend class BandCholesky;

  void reduce_panel(Eigen::Index first, Eigen::Index width);
  /// x becomes Q_k^T x ('N') or Q_k x ('T') for panel k.
  void reflect(std::size_t panel, char transpose, Matrix<double>& x, Matrix<double>& work) const;

  Eigen::Index size_;
  Matrix<double> reflectors_;             ///< As LAPACK's dgeqrt leaves them, below the band.
  Eigen::Index bandwidth_;                ///< Rows of all blocks but the last.
  std::vector<Matrix<double>> factors_;   ///< T of each panel: Q = I - V T V^T.
  std::vector<Matrix<double>> diagonal_;  ///< Blocks of B, symmetric.
  std::vector<Matrix<double>> below_;     ///< Block k + 1, k of B; upper triangular.
};

/// Cholesky factor of B + lambda I.
class BandCholesky {
 public:
  /// Empty where B + lambda I is not positive definite.
  [[nodiscard]] static std::optional<BandCholesky> of(const BandForm& form, double lambda);

  /// L^-1 x for x [n, columns]; 3 n bandwidth columns operations.
  void whiten(Matrix<double>& x) const;

  /// L^-T x: after whiten(), (B + lambda I)^-1 of what it began with.
  void unwhiten(Matrix<double>& x) const;

  [[nodiscard]] double log_determinant() const;

 private:
  // Blocks k, k and k + 1, k of L, whose factor is L L^T = B + lambda I.
  std::vector<Matrix<double>> diagonal_;  ///< Lower triangular.
  std::vector<Matrix<double>> below_;
};

}  // namespace widelimit::gp
