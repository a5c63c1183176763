#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "widelimit/gp/conjugate_gradients.hpp"
#include "widelimit/gp/cross_gram.hpp"
#include "widelimit/gp/kernel_operator.hpp"
#include "widelimit/gp/leave_one_out.hpp"
#include "widelimit/gp/noise.hpp"
#include "widelimit/gp/selection.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::gp {

struct IterativeSelection;
struct LowRankKernel;

/// Regression if the Gram matrix cannot be factorized: everything is solved by conjugate gradients
/// (solve_shifted()), with its errors. No n x n matrix is held here. There is no log marginal likelihood, because
/// it takes a determinant. Conventions, amplitude and errors are those of Regression. Cross Gram matrices are read in
/// blocks of rows. Copies are cheap except for the weights: they share the preconditioner.
class IterativeRegression {
 public:
  [[nodiscard]] static IterativeRegression fit(std::shared_ptr<const KernelOperator> gram,
                                               const Matrix<double>& targets, const Noise& noise,
                                               const ConjugateGradientOptions& options = {});

  /// select_regulariser() by accuracy or mean squared error on validation data (ArgumentError for another criterion),
  /// and the regression with its choice, for which nothing is solved again: the whole grid is solved at once. Without
  /// eigenvalues, the smallest one counts as 0: values of the grid below ten times the rounding errors of K
  /// (KernelOperator::epsilon()) are left out even if K alone is above them.
  [[nodiscard]] static IterativeSelection select(std::shared_ptr<const KernelOperator> gram,
                                                 const Matrix<double>& targets,
                                                 const CrossGram& validation_cross,
                                                 const Matrix<double>& validation_targets,
                                                 const std::vector<double>& grid = regulariser_grid(),
                                                 Criterion criterion = Criterion::accuracy,
                                                 const ConjugateGradientOptions& options = {});

  /// The same for each output on its own: a regression of one output each. The whole grid is solved once for all.
  [[nodiscard]] static std::vector<IterativeSelection> select_each(
      std::shared_ptr<const KernelOperator> gram, const Matrix<double>& targets,
      const CrossGram& validation_cross, const Matrix<double>& validation_targets,
      const std::vector<double>& grid = regulariser_grid(), Criterion criterion = Criterion::accuracy,
      const ConjugateGradientOptions& options = {});

  /// One regression for the outputs of several that share matrix and noise, with the amplitude 1. ArgumentError for
  /// none, and for different noise.
  [[nodiscard]] static IterativeRegression joined(const std::vector<IterativeRegression>& parts);

  /// One whose `weights` [n, outputs] were solved for before, of the noise variance `lambda`, with the amplitude 1.
  /// ArgumentError for other shapes, and for numbers that are not finite.
  [[nodiscard]] static IterativeRegression of_weights(std::shared_ptr<const KernelOperator> gram,
                                                      Matrix<double> weights, double lambda,
                                                      const ConjugateGradientOptions& options = {});

  /// Another one of the same matrix, with which it shares the preconditioner.
  [[nodiscard]] IterativeRegression with_weights(Matrix<double> weights, double lambda,
                                                 const ConjugateGradientOptions& options) const;

  /// See Regression::with_amplitude().
  [[nodiscard]] IterativeRegression with_amplitude(double amplitude) const;

  /// [n_test, outputs].
  [[nodiscard]] Matrix<double> mean(const CrossGram& cross_gram) const;

  /// [n_test]; see Regression::variance(). Solves for every test input: some tens of passes over K for a block of 256.
  [[nodiscard]] Vector<double> variance(const CrossGram& cross_gram,
                                        const Vector<double>& test_variances) const;

  /// [n_test, n_test], exactly symmetric; see Regression::covariance(). Solves for every test input.
  [[nodiscard]] Matrix<double> covariance(const CrossGram& cross_gram, Matrix<double> test_gram) const;

  /// [n_test], for converged networks whose NTK is the matrix here: ConvergedFlow::variance(). One pass over the NNGP
  /// in addition for a block of 512.
  [[nodiscard]] Vector<double> flow_variance(const KernelOperator& nngp, const CrossGram& nngp_cross,
                                             const CrossGram& ntk_cross,
                                             const Vector<double>& nngp_test_variances) const;

  /// [n_test, n_test], the same for all pairs of test inputs. Holds n n_test numbers.
  [[nodiscard]] Matrix<double> flow_covariance(const KernelOperator& nngp, const CrossGram& nngp_cross,
                                               const CrossGram& ntk_cross, Matrix<double> nngp_test) const;

  /// ConvergedFlow::leave_one_out() with amplitude 1, for converged networks whose NTK is the matrix here. Solves for
  /// every training input, 256 at a time, with a pass over the NNGP each: at least n / 256 times the weights' cost.
  [[nodiscard]] LeaveOneOut flow_leave_one_out(const KernelOperator& nngp) const;
  /// The same for some inputs.
  [[nodiscard]] LeaveOneOut flow_leave_one_out(const KernelOperator& nngp,
                                               std::span<const Index> inputs) const;

  /// The scale of its residuals: ConvergedFlow::leave_one_out_amplitude().
  [[nodiscard]] double flow_leave_one_out_amplitude(const KernelOperator& nngp) const;

  /// (K + lambda I)^-1 K_*^T, [n, n_test], in blocks of test inputs as above.
  [[nodiscard]] Matrix<double> responses(const Matrix<double>& cross_gram) const;

  [[nodiscard]] double amplitude() const noexcept { return amplitude_; }
  [[nodiscard]] double noise_variance() const noexcept { return amplitude_ * lambda_; }
  /// (K + lambda I)^-1 y, [n, outputs].
  [[nodiscard]] const Matrix<double>& weights() const noexcept { return weights_; }
  /// The passes for the weights, and their residual; see ShiftedSolutions.
  [[nodiscard]] int passes() const noexcept { return passes_; }
  [[nodiscard]] double relative_residual() const noexcept { return relative_residual_; }

 private:
  IterativeRegression(std::shared_ptr<const KernelOperator> gram, const ConjugateGradientOptions& options);
  static std::vector<IterativeSelection> select_all(std::shared_ptr<const KernelOperator> gram,
                                                    const Matrix<double>& targets,
                                                    const CrossGram& validation_cross,
                                                    const Matrix<double>& validation_targets,
                                                    const std::vector<double>& grid, Criterion criterion,
                                                    const ConjugateGradientOptions& options, bool apart);
  void take_weights(const ShiftedSolutions& path, std::size_t number, const std::vector<double>& lambdas);
  void require_flow(const KernelOperator& nngp, const CrossGram& nngp_cross, const CrossGram& ntk_cross,
                    const char* where) const;
  void fit_amplitude(const Matrix<double>& targets);
  [[nodiscard]] Matrix<double> solved(const Matrix<double>& b) const;

  std::shared_ptr<const KernelOperator> gram_;
  ConjugateGradientOptions options_;
  std::shared_ptr<const LowRankKernel> preconditioner_;
  Matrix<double> weights_;
  double lambda_ = 0;
  double amplitude_ = 1;
  int passes_ = 0;
  double relative_residual_ = 0;
};

struct IterativeSelection {
  Selection selection;
  IterativeRegression regression;
};

}  // namespace widelimit::gp
