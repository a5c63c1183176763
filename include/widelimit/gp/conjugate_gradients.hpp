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
  /// Of every column: |b - (K + lambda I) x| / |b|, computed anew from x at the end. In (0, 1).
  double relative_residual = 1e-10;
  int most_passes = 2000;  ///< Over K, at least 1.
  /// Columns of K that the preconditioner knows, at most n / 10; absent: n / 10, at most 2,000.
  std::optional<Index> preconditioner_columns = {};
  /// What becomes of a lambda that cannot be solved for: an error, or, while others can, a reason in
  /// ShiftedSolutions::unsolved.
  bool leave_out_unsolved = false;
  int threads = 0;            ///< 0: all of the machine's.
  std::stop_token stop = {};  ///< Throws Cancelled between passes.
  /// Hears of every pass: how many there were, and the largest relative residual as the recurrences have it.
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
  int passes;  ///< Over K, those for the preconditioner and the residuals included.
  /// Why a lambda is not solved for; empty where it is. For ConjugateGradientOptions::leave_out_unsolved.
  std::vector<std::string> unsolved = {};
};

/// Solves (K + lambda I) x = b for all lambdas and all columns of b
/// together: one pass over K serves an iteration of all.
///
/// Method  block conjugate gradients with orthonormal residual blocks: the columns of b share their search space, each
///         lambda has its own and a preconditioner U S U^T + (tau + lambda) I from few columns of K. Solved lambdas
///         leave.
///         What the recurrences promise is checked with one more pass, and improved from there if rounding broke it.
/// Memory  4 n columns numbers a lambda, and n numbers for each column of the preconditioner.
/// Errors  ArgumentError for shapes, numbers that are not finite, lambdas below 0 and options out of range;
///         NotPositiveDefinite where x^T (K + lambda I) x <= 0 shows up: rounding, as of Gram matrices in float,
///         outweighs lambda; NotConverged if the residual stalls above the one asked for, or after most_passes. Where
///         lambda stands below ten times the rounding errors of K (KernelOperator::epsilon()), the message says so, and
///         which regulariser would do.
/// Source  Dubrulle 2001, Retooling the method of block conjugate gradients (BCGrQ).
[[nodiscard]] ShiftedSolutions solve_shifted(const KernelOperator& gram, const Matrix<double>& b,
                                             const std::vector<double>& lambdas,
                                             const ConjugateGradientOptions& options = {});

}  // namespace widelimit::gp
