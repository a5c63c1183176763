#pragma once

#include "gp/solvers/low_rank_preconditioner.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// Conjugate gradients for one lambda and all columns of b, in steps around the products with K: search(), then
/// advance(K search()). With the preconditioner's root H, they run on H (K + lambda I) H and H b.
class BlockConjugateGradients {
 public:
  BlockConjugateGradients(const LowRankKernel& kernel, double lambda, const Matrix<double>& b);

  /// The directions that K is to be multiplied with, [n, columns].
  [[nodiscard]] const Matrix<double>& search() const noexcept { return preconditioned_search_; }

  /// `product` is K times search(). False where (K + lambda I) is not positive definite along it.
  [[nodiscard]] bool advance(const Matrix<double>& product);

  /// Norm of each column of the residual, as the recurrences have it.
  [[nodiscard]] Vector<double> residual_norms() const;

  [[nodiscard]] Matrix<double> solution() const { return preconditioner_.apply(solution_); }
  [[nodiscard]] double lambda() const noexcept { return lambda_; }

 private:
  LowRankPreconditioner preconditioner_;
  double lambda_;
  Matrix<double> residual_factor_;  ///< The residual is Q times this; the constructor of Q makes it.
  Matrix<double> residual_basis_;   ///< Q, orthonormal columns.
  Matrix<double> search_;
  Matrix<double> preconditioned_search_;
  Matrix<double> solution_;
};

}  // namespace widelimit::gp
