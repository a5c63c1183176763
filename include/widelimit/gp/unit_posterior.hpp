#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "widelimit/gp/leave_one_out.hpp"
#include "widelimit/gp/posterior.hpp"
#include "widelimit/index.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// The cost of the weights of a prediction: of all candidates together.
struct IterativeSolution {
  int passes;                ///< Passes over the Gram matrix.
  double relative_residual;  ///< Of the chosen one.
};

/// The prediction of a solver for some outputs at the test inputs, with one regulariser and the amplitude 1.
class UnitPosterior {
 public:
  virtual ~UnitPosterior() = default;

  [[nodiscard]] virtual Matrix<double> mean() const = 0;      ///< [n_test, outputs]
  [[nodiscard]] virtual Vector<double> variance() const = 0;  ///< [n_test], of the function.
  [[nodiscard]] virtual double lambda() const = 0;            ///< The variance of the noise.
  /// The amplitudes that make the targets most likely, [outputs]: one for all of them, or each its own. Those of
  /// networks after training use representative_sets().
  [[nodiscard]] virtual Vector<double> amplitudes(bool apart) const = 0;
  /// Log evidence of the targets with these amplitudes, summed over the outputs; nothing without a determinant.
  [[nodiscard]] virtual std::optional<double> log_marginal_likelihood(
      const Vector<double>& amplitudes) const {
    static_cast<void>(amplitudes);
    return std::nullopt;
  }
  /// Predictions for the training targets of representative_sets() from all others, with the amplitude 1;
  /// nothing if that would take a solve for each.
  [[nodiscard]] virtual std::optional<LeaveOneOut> leave_one_out() const { return std::nullopt; }
  /// For any new inputs, if the solver was made with SolverOptions::keeps_posteriors; nothing for ranks.
  [[nodiscard]] virtual std::optional<Posterior> kept() const { return std::nullopt; }
  /// How it was solved for, if that was by conjugate gradients.
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
