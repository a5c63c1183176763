#pragma once

#include <memory>
#include <span>

#include "distributed/block_cyclic_matrix.hpp"
#include "distributed/rank_solver.hpp"

namespace widelimit::distributed {

/// gp::Regression with its Gram matrix in the memory of all ranks: n^2 / ranks numbers each, made tile by tile from
/// kernels or a store. Conventions and amplitude are those of gp::Regression. Results are the same on all ranks, and
/// the same bits for one number of ranks and one block; for others they differ by rounding.
class DistributedRegression final : public RankRegression {
 public:
  static constexpr Index default_block = 256;

  /// `gram` gives tiles of the symmetric K [n, n], asked for where row >= column; `targets` [n, outputs] are known to
  /// all ranks. Errors: ArgumentError for shapes, require_local_parts(); gp::NotPositiveDefinite; NumericalError for
  /// numbers that are not finite and for what `gram` throws on any rank. Cost n^3 / 3 multiplications over all ranks.
  /// `threads`: of each rank, for its blocks, here and in all that follows; 0: as many as BLAS is set to.
  DistributedRegression(const ProcessGrid& grid, const Tile& gram, const Matrix<double>& targets,
                        const gp::Noise& noise, Index block = default_block, int threads = 0);

  /// The same of tiles that all ranks see, larger ones as a rule: from a store, or from the memory of the ranks.
  DistributedRegression(const ProcessGrid& grid, const EachTile& gram, const Matrix<double>& targets,
                        const gp::Noise& noise, Index block = default_block, int threads = 0);

  /// [n_test, outputs]. All ranks read the same rows of cross Gram matrices, in the same order.
  [[nodiscard]] Matrix<double> mean(const gp::CrossGram& cross) const override;

  /// [n_test]; see gp::Regression::variance(). Cost n_test n^2 / 2 over all ranks, in blocks of test inputs.
  [[nodiscard]] Vector<double> variance(const gp::CrossGram& cross,
                                        const Vector<double>& test_variances) const override;

  /// [n_test], of converged networks whose NTK is the matrix here: gp::ConvergedFlow::variance(). `nngp` multiplies on
  /// all ranks together. Cost 2 n_test n^2 over all ranks, in blocks.
  [[nodiscard]] Vector<double> flow_variance(const gp::KernelOperator& nngp, const gp::CrossGram& nngp_cross,
                                             const gp::CrossGram& ntk_cross,
                                             const Vector<double>& nngp_test_variances) const override;

  /// gp::Regression::leave_one_out() of some inputs. Cost n^2 an input over all ranks, in blocks.
  [[nodiscard]] gp::LeaveOneOut leave_one_out(std::span<const Index> inputs) const override;

  /// Of converged networks whose NTK is the matrix here: gp::ConvergedFlow::leave_one_out() of some inputs, with
  /// amplitude 1. `nngp` multiplies on all ranks together. Cost 2 n^2 an input over all ranks, in blocks.
  [[nodiscard]] gp::LeaveOneOut flow_leave_one_out(const gp::KernelOperator& nngp,
                                                   std::span<const Index> inputs) const override;

  [[nodiscard]] double log_marginal_likelihood() const;

  /// See gp::Regression::with_amplitude().
  void set_amplitude(double amplitude);
  [[nodiscard]] double amplitude() const noexcept { return amplitude_; }
  [[nodiscard]] double noise_variance() const noexcept override { return amplitude_ * lambda_; }
  /// The log determinant of K + lambda I.
  [[nodiscard]] double log_determinant() const noexcept override { return log_determinant_; }
  [[nodiscard]] const Matrix<double>& weights() const noexcept override { return weights_; }

 private:
  /// Holds BLAS at the number of threads while it lives.
  [[nodiscard]] std::shared_ptr<void> hold_threads() const;
  void factorize(const gp::Noise& noise);
  void take_targets(const Matrix<double>& targets, const gp::Noise& noise);
  /// (K + lambda I)^-1 b on all ranks, for b [n, columns].
  [[nodiscard]] Matrix<double> solved(const Matrix<double>& b) const;
  /// b^T (K + lambda I)^-1 b of each of `count` columns b, whose entries are entry(row, column).
  template <typename Entry>
  [[nodiscard]] Vector<double> inverse_forms(Index count, const Entry& entry) const;
  /// Rows of a cross Gram matrix, or an error on all ranks.
  [[nodiscard]] Matrix<double> rows_of(const gp::CrossGram& cross, Index first, Index count) const;

  const ProcessGrid& grid_;
  Index block_;
  int threads_;
  BlockCyclicMatrix factor_;  ///< Lower triangle.
  Matrix<double> weights_;
  double lambda_ = 0;
  double log_determinant_ = 0;
  double quadratic_form_ = 0;
  double amplitude_ = 1;
};

}  // namespace widelimit::distributed
