#pragma once

#include <Eigen/Core>
#include <optional>

#include "widelimit/gp/fit.hpp"
#include "widelimit/gp/selection.hpp"
#include "widelimit/gp/solver_choice.hpp"

namespace CLI {
class App;
}

namespace widelimit::cli {

/// How fit solves systems with the Gram matrix.
struct FitSolver {
  std::optional<gp::Solver> given;
  double residual = 1e-10;

  [[nodiscard]] gp::Solver solver() const { return given.value_or(gp::Solver::cholesky); }
  [[nodiscard]] bool iterates() const { return solver() == gp::Solver::conjugate_gradients; }
  /// What regularisers are chosen by where nothing else is asked for.
  [[nodiscard]] gp::Criterion usual_criterion() const {
    return iterates() ? gp::Criterion::mean_squared_error : gp::Criterion::leave_one_out;
  }
};

/// Adds --solver and --residual.
void add_fit_solver_options(CLI::App& command, FitSolver& solver);

/// Throws CLI::ValidationError for what the solver cannot do, with the option and what to give instead.
void check_fit_solver_usage(const CLI::App& command, const FitSolver& solver,
                            const gp::IterativeWishes& wishes);

/// Throws ArgumentError where conjugate gradients would have to solve for more outputs than there are inputs.
void check_fit_outputs(const FitSolver& solver, Eigen::Index inputs, Eigen::Index outputs);

}  // namespace widelimit::cli
