#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "widelimit/gp/gram_source.hpp"
#include "widelimit/gp/selection.hpp"
#include "widelimit/gp/solver_choice.hpp"
#include "widelimit/gp/unit_posterior.hpp"

namespace widelimit::gp {

/// Targets as the kernels see them.
struct SolverTargets {
  Matrix<double> train;       ///< [n, outputs]
  Matrix<double> validation;  ///< [n_validation, outputs]; empty where nothing is chosen on validation data.
  bool apart;                 ///< Whether each output has a regulariser and an amplitude of its own.

  /// Those of some outputs.
  [[nodiscard]] Matrix<double> train_of(const std::vector<Index>& outputs) const;
};

/// What all solvers are told.
struct SolverOptions {
  Criterion criterion = Criterion::leave_one_out;
  std::vector<double> candidates = regulariser_grid();  ///< Relative.
  std::vector<double> times;                            ///< Of gradient flow, infinite_time first.
  bool needs_amplitudes = true;
  int threads = 0;
  double residual = 1e-10;  ///< At which conjugate gradients stop, relative.
  std::stop_token stop = {};
  /// How far conjugate gradients with a kernel are: passes and the largest relative residual.
  std::function<void(const std::string& kernel, int passes, double residual)> progress = {};
};

/// Regularisers and posteriors with one kernel: "nngp", the regression, or "ntk", networks after training.
class KernelSolver {
 public:
  virtual ~KernelSolver() = default;

  /// The choice among the candidates, for all outputs or for each.
  [[nodiscard]] virtual std::vector<Selection> select() = 0;
  /// What regularisers are judged by, where select() is not called.
  [[nodiscard]] virtual GramAccuracy accuracy() const = 0;
  /// A posterior for each time, of one regulariser. `last`: the Gram matrices are not wanted again.
  [[nodiscard]] virtual std::vector<std::unique_ptr<UnitPosterior>> fit(const std::vector<Index>& outputs,
                                                                        double regulariser, bool last) = 0;
};

/// Of factorized matrices. `kernels_follow`: the NNGP is wanted again after this kernel. All refer to their arguments.
[[nodiscard]] std::unique_ptr<KernelSolver> direct_solver(const std::string& kernel, GramSources& grams,
                                                          const SolverTargets& targets,
                                                          const SolverOptions& options, bool kernels_follow);

/// Of conjugate gradients.
[[nodiscard]] std::unique_ptr<KernelSolver> iterative_solver(const std::string& kernel, GramSources& grams,
                                                             const SolverTargets& targets,
                                                             const SolverOptions& options);

}  // namespace widelimit::gp
