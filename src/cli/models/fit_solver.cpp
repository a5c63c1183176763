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

void check_fit_solver_usage(const CLI::App& command, const FitSolver& solver, const FitWishes& wishes) {
  if (!solver.iterates()) {
    if (command.count("--residual") > 0) throw CLI::ValidationError("--residual", "is for --solver cg");
    return;
  }
  if (wishes.has_time)
    throw CLI::ValidationError("--solver", "cg knows networks after training only, no --time; take cholesky");
  if (wishes.knows_noise && !wishes.has_amplitude)
    throw CLI::ValidationError(
        "--solver",
        "cg takes --amplitude with --noise-variance, as finding it takes factorizations; give "
        "it, or take cholesky");
  if (wishes.chooses && wishes.criterion && *wishes.criterion != gp::Criterion::accuracy &&
      *wishes.criterion != gp::Criterion::mean_squared_error)
    throw CLI::ValidationError(
        "--criterion",
        fmt::format("{}: --solver cg chooses regularisers by accuracy or mse on validation data; take "
                    "one of them, give --regulariser, or --solver cholesky",
                    criterion_name(*wishes.criterion)));
}

void check_fit_outputs(const FitSolver& solver, Eigen::Index inputs, Eigen::Index outputs) {
  if (solver.iterates() && outputs > inputs)
    throw ArgumentError(
        fmt::format("--solver cg solves for no more outputs than there are training inputs, got {} outputs "
                    "and {} inputs: "
                    "give --solver cholesky",
                    outputs, inputs));
}

}  // namespace widelimit::cli
