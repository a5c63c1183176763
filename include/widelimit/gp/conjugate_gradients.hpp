#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <vector>

#include "widelimit/error.hpp"
#include "widelimit/gp/kernel_operator.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::gp {

struct ConjugateGradientOptions {
  /// For every column: |b - (K + lambda I) x| / |b|, computed anew from x at the end. In (0, 1).
  double relative_residual = 1e-10;
  int most_passes = 2000;  ///< Passes over K, at least 1.
  /// Columns of K that the preconditioner uses, at most n / 10; absent: n / 10, at most 2,000.
  std::optional<Index> preconditioner_columns = {};
  /// What happens to a lambda that cannot be solved for: an error, or, if others can, a reason in
  /// ShiftedSolutions::unsolved.
  bool leave_out_unsolved = false;
  int threads = 0;            ///< 0: all cores of the machine.
  std::stop_token stop = {};  ///< Throws Cancelled between passes.
  /// Called after every pass with the number of passes, and the largest relative residual from the recurrences.
  std::function<void(int passes, double relative_residual)> progress = {};
};

/// The residual asked for was not reached.
class NotConverged : public NumericalError {
 public:
  NotConverged(const std::string& message, double residual) : NumericalError(message), residual_{residual} {}
  [[nodiscard]] double relative_residual() const noexcept { return residual_; }

 private:
  double residual_;
};

struct ShiftedSolutions {
  std::vector<Matrix<double>> solutions;   ///< (K + lambda I)^-1 b for every lambda, each [n, columns].
  std::vector<double> relative_residuals;  ///< Largest of the columns of each.
  int passes;  ///< Passes over K, including those for the preconditioner and the residuals.
  /// Why a lambda is not solved for; empty if it is. For ConjugateGradientOptions::leave_out_unsolved.
  std::vector<std::string> unsolved = {};
};

/// Solves (K + lambda I) x = b for all lambdas and all columns of b
/// together: one pass over K serves an iteration of all.
///
/// Method  block conjugate gradients with orthonormal residual blocks: the columns of b share their search space, each
///         lambda has its own and a preconditioner U S U^T + (tau + lambda) I from few columns of K. Solved lambdas
///         drop out.
///         One more pass checks the residuals of the recurrences, and improves them if rounding broke these.
/// Memory  4 n columns numbers for each lambda, and n numbers for each column of the preconditioner.
/// Errors  ArgumentError for shapes, numbers that are not finite, lambdas below 0 and options out of range;
///         NotPositiveDefinite if x^T (K + lambda I) x <= 0 occurs: rounding, as of Gram matrices in float,
///         outweighs lambda; NotConverged if the residual stalls above the requested one, or after most_passes. If
///         lambda is below ten times the rounding errors of K (KernelOperator::epsilon()), the message says so, and
///         which regulariser would suffice.
/// Source  Dubrulle 2001, Retooling the method of block conjugate gradients (BCGrQ).
[[nodiscard]] ShiftedSolutions solve_shifted(const KernelOperator& gram, const Matrix<double>& b,
                                             const std::vector<double>& lambdas,
                                             const ConjugateGradientOptions& options = {});

}  // namespace widelimit::gp
