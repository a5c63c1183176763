#pragma once

#include "widelimit/gp/kernel_operator.hpp"
#include "widelimit/matrix.hpp"

/// What makes K + lambda I easier for conjugate gradients.
namespace widelimit::gp {

/// K as some of its columns tell: U S U^T + tau I, with orthonormal U [n, rank] (Nystroem).
struct LowRankKernel {
  Matrix<double> vectors;  ///< U.
  Vector<double> values;   ///< S.
  double remainder;        ///< tau: mean of the diagonal that the columns leave.

  /// From `columns` columns chosen at random, the same ones for every matrix of a size; 0 of them give U
  /// without columns. Which ones they are hardly matters for kernels of networks on images. Cost one pass,
  /// 2 n columns^2 operations.
  [[nodiscard]] static LowRankKernel of(const KernelOperator& gram, Index columns);
};

/// The root of the inverse of U S U^T + (tau + lambda) I, up to a factor: H = I + U D U^T.
class LowRankPreconditioner {
 public:
  /// `kernel` must outlive this.
  LowRankPreconditioner(const LowRankKernel& kernel, double lambda);

  /// H x, 4 n rank operations a column.
  [[nodiscard]] Matrix<double> apply(const Matrix<double>& x) const { return scaled(x, factors_); }

  /// H^-1 x.
  [[nodiscard]] Matrix<double> undo(const Matrix<double>& x) const { return scaled(x, inverse_factors_); }

 private:
  [[nodiscard]] Matrix<double> scaled(const Matrix<double>& x, const Vector<double>& factors) const;

  const LowRankKernel* kernel_;
  Vector<double> factors_;          ///< D.
  Vector<double> inverse_factors_;  ///< D' of H^-1 = I + U D' U^T.
};

}  // namespace widelimit::gp
