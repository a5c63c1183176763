#pragma once

#include <memory>
#include <span>

#include "widelimit/gp/double_matrix.hpp"
#include "widelimit/gp/leave_one_out.hpp"
#include "widelimit/gp/noise.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// GradientFlow at infinite time only: the same numbers from a Cholesky factorization, at a fortieth of the cost. With
/// K the NNGP kernel, T the NTK and G = (T + lambda I)^-1,
///     mean       = T_* G y
///     covariance = K_** + B K B^T - B K_*^T - K_* B^T,  B = T_* G.
///
/// Conventions, precision, amplitude and threads are those of GradientFlow.
/// Errors  ArgumentError as for GradientFlow; NotPositiveDefinite if the factorization breaks down.
/// Copies  are cheap: they share the matrices.
class ConvergedFlow {
 public:
  /// What T + lambda I is turned into, in place. The numbers that follow from it are the same up to rounding.
  enum class Holds {
    inverse,  ///< G: n^3 operations. For leave_one_out() and amplitudes.
    factor    ///< Cholesky's: n^3 / 3, if the amplitude is given; leave_one_out() costs three times as much.
  };

  /// Keeps K and one matrix made from T, 2 n^2 numbers, and holds no more: hand both matrices over with std::move.
  [[nodiscard]] static ConvergedFlow fit(DoubleMatrix nngp, DoubleMatrix ntk, const Matrix<double>& targets,
                                         const Noise& regulariser, int threads = 0,
                                         Holds holds = Holds::inverse);

  /// See GradientFlow::with_amplitude().
  [[nodiscard]] ConvergedFlow with_amplitude(double amplitude) const;

  /// See GradientFlow::leave_one_out_amplitude(). Cost n^3 operations, in blocks.
  [[nodiscard]] double leave_one_out_amplitude() const;

  /// See GradientFlow::leave_one_out(). Cost n^3 operations, in blocks.
  [[nodiscard]] LeaveOneOut leave_one_out() const;
  /// The same for some inputs, n^2 operations each, or three times as many without the inverse.
  [[nodiscard]] LeaveOneOut leave_one_out(std::span<const Eigen::Index> inputs) const;
  /// The same for sets that are left out together, row by row of `sets.inputs`: of a set g the residuals
  /// G_gg^-1 (G y)_g and, of each input for itself, variances on the diagonal of G_gg^-1 (G K G)_gg G_gg^-1, with
  /// noise.
  [[nodiscard]] LeaveOneOut leave_one_out(const LeftOutSets& sets) const;

  /// Mean at the test inputs, [n_test, outputs], from the NTK between test (rows) and training inputs.
  [[nodiscard]] Matrix<double> mean(const DoubleMatrix& ntk_cross) const;

  /// Variances at the test inputs, [n_test]; see GradientFlow::variance(). Cost 3 n_test n^2 operations, in blocks.
  [[nodiscard]] Vector<double> variance(const DoubleMatrix& nngp_cross, const DoubleMatrix& ntk_cross,
                                        const Vector<double>& nngp_test_variances) const;

  /// a.
  [[nodiscard]] double amplitude() const noexcept { return amplitude_; }

  /// a lambda.
  [[nodiscard]] double regulariser_variance() const noexcept { return amplitude_ * lambda_; }

  /// G y, [n, outputs].
  [[nodiscard]] const Matrix<double>& weights() const noexcept { return weights_; }

 private:
  struct Matrices;

  ConvergedFlow() = default;
  /// G x, for x [n, columns].
  [[nodiscard]] Matrix<double> response(const Matrix<double>& x) const;

  std::shared_ptr<const Matrices> matrices_;
  Matrix<double> weights_;
  double lambda_ = 0;
  double amplitude_ = 1;
  int threads_ = 1;
};

}  // namespace widelimit::gp
