#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "widelimit/gp/leave_one_out.hpp"
#include "widelimit/index.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// What the weights of a prediction took: those of all candidates together.
struct IterativeSolution {
  int passes;                ///< Over the Gram matrix.
  double relative_residual;  ///< Of the chosen one.
};

/// What a solver says of some outputs at the test inputs, with one regulariser and the amplitude 1.
class UnitPosterior {
 public:
  virtual ~UnitPosterior() = default;

  [[nodiscard]] virtual Matrix<double> mean() const = 0;      ///< [n_test, outputs]
  [[nodiscard]] virtual Vector<double> variance() const = 0;  ///< [n_test], of the function.
  [[nodiscard]] virtual double lambda() const = 0;            ///< The variance of the noise.
  /// The amplitudes that make the targets most likely, [outputs]: one for all of them, or each its own. Those of
  /// networks after training come from representative_inputs().
  [[nodiscard]] virtual Vector<double> amplitudes(bool apart) const = 0;
  /// Of the targets with these amplitudes, summed over the outputs; nothing where a solver has no determinant.
  [[nodiscard]] virtual std::optional<double> log_marginal_likelihood(
      const Vector<double>& amplitudes) const {
    static_cast<void>(amplitudes);
    return std::nullopt;
  }
  /// What the training targets of representative_inputs() are predicted to be from all others, with the amplitude 1;
  /// nothing where that would cost a solution for each.
  [[nodiscard]] virtual std::optional<LeaveOneOut> leave_one_out() const { return std::nullopt; }
  /// How it was solved for, where that was by conjugate gradients.
  [[nodiscard]] virtual std::optional<IterativeSolution> solution() const { return std::nullopt; }
};

/// log N(0, a (K + lambda I)) of targets with y^T (K + lambda I)^-1 y = `quadratic_form`, summed over `outputs` of
/// which each has n numbers; see Regression::log_marginal_likelihood().
[[nodiscard]] double log_evidence(double quadratic_form, double log_determinant, Index n, Index outputs,
                                  double amplitude);

/// `log_evidence` of outputs with amplitudes of their own, or, where these are all equal, of all together.
[[nodiscard]] double log_evidence(const Vector<double>& quadratic_forms, double log_determinant, Index n,
                                  const Vector<double>& amplitudes);

}  // namespace widelimit::gp
