#include "cli/models/fit_solver.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/options/inference_options.hpp"
#include "cli/options/ranges.hpp"
#include "widelimit/error.hpp"

namespace widelimit::cli {

void add_fit_solver_options(CLI::App& command, FitSolver& solver) {
  add_choice<gp::Solver>(
      command, "--solver", solver.given,
      {{"cholesky", gp::Solver::cholesky}, {"cg", gp::Solver::conjugate_gradients}}, "cholesky|cg",
      "How systems with the Gram matrix are solved: factorized (cholesky), or by conjugate gradients "
      "(cg), which need no second copy, and with --device and a network without positions no matrix at "
      "all; no evidence, leave-one-out and --time (docs/solvers.md) [cholesky]");
  add_residual_option(command, solver.residual);
}

void check_fit_solver_usage(const CLI::App& command, const FitSolver& solver,
                            const gp::IterativeWishes& wishes) {
  if (!solver.iterates()) {
    if (command.count("--residual") > 0) throw CLI::ValidationError("--residual", "is for --solver cg");
    return;
  }
  if (const std::string reason = gp::against_conjugate_gradients(wishes, solver_words); !reason.empty())
    throw CLI::ValidationError("--solver", reason);
}

void check_fit_outputs(const FitSolver& solver, Eigen::Index inputs, Eigen::Index outputs) {
  if (!solver.iterates()) return;
  const gp::IterativeWishes wishes{.inputs = inputs, .outputs = outputs};
  if (const std::string reason = gp::against_conjugate_gradients(wishes, solver_words); !reason.empty())
    throw ArgumentError("--solver: " + reason);
}

}  // namespace widelimit::cli
