#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "widelimit/gp/gram_source.hpp"
#include "widelimit/gp/leave_one_out.hpp"
#include "widelimit/gp/selection.hpp"
#include "widelimit/gp/solver_choice.hpp"
#include "widelimit/gp/unit_posterior.hpp"

namespace widelimit::gp {

/// Targets in the form that the kernels need.
struct SolverTargets {
  Matrix<double> train;       ///< [n, outputs]
  Matrix<double> validation;  ///< [n_validation, outputs]; empty if nothing is chosen on validation data.
  bool apart;                 ///< Whether each output has its own regulariser and amplitude.
  LeftOut left_out = {};      ///< Of the training inputs.

  /// The targets of some outputs.
  [[nodiscard]] Matrix<double> train_of(const std::vector<Index>& outputs) const;
};

/// The options of all solvers.
struct SolverOptions {
  Criterion criterion = Criterion::leave_one_out;
  std::vector<double> candidates = regulariser_grid();  ///< Relative.
  std::vector<double> times;                            ///< Of gradient flow, infinite_time first.
  bool needs_amplitudes = true;
  bool keeps_posteriors = false;  ///< For any new inputs: UnitPosterior::kept().
  int threads = 0;
  double residual = 1e-10;  ///< Relative residual at which conjugate gradients stop.
  std::stop_token stop = {};
  /// The progress of conjugate gradients with a kernel: passes and the largest relative residual.
  std::function<void(const std::string& kernel, int passes, double residual)> progress = {};
};

/// Regularisers and posteriors with one kernel: "nngp", the regression, or "ntk", networks after training.
class KernelSolver {
 public:
  virtual ~KernelSolver() = default;

  /// The choice among the candidates, for all outputs or for each.
  [[nodiscard]] virtual std::vector<Selection> select() = 0;
  /// The criterion for regularisers, if select() is not called.
  [[nodiscard]] virtual GramAccuracy accuracy() const = 0;
  /// A posterior for each time, with one regulariser. `last`: the Gram matrices are not needed again.
  [[nodiscard]] virtual std::vector<std::unique_ptr<UnitPosterior>> fit(const std::vector<Index>& outputs,
                                                                        double regulariser, bool last) = 0;
};

/// Solves with factorized matrices. `kernels_follow`: the NNGP is needed again. All refer to their arguments.
[[nodiscard]] std::unique_ptr<KernelSolver> direct_solver(const std::string& kernel, GramSources& grams,
                                                          const SolverTargets& targets,
                                                          const SolverOptions& options, bool kernels_follow);

/// Solves by conjugate gradients.
[[nodiscard]] std::unique_ptr<KernelSolver> iterative_solver(const std::string& kernel, GramSources& grams,
                                                             const SolverTargets& targets,
                                                             const SolverOptions& options);

}  // namespace widelimit::gp
