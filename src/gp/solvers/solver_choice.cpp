#include "widelimit/gp/solver_choice.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace widelimit::gp {
namespace {

/// Numbers of double that conjugate gradients hold: the preconditioner and what it is made of, the vectors of a block
/// of right-hand sides, and rows of test inputs.
double iterative_numbers(double n) {
  constexpr double most_columns = 2000, blocks = 10 * 256, rows = 3 * 512;
  return n * (2 * std::min(n / 10, most_columns) + std::min(n, blocks) + std::min(n, rows));
}

/// Matrices of n x n doubles that a factorization holds.
double factorized_matrices(const SolverNeeds& needs) {
  if (needs.kernels == Kernels::nngp) return 1.1;  // The matrix, in place.
  return needs.finite_times ? 2.4 : 2.1;           // Both kernels, or one and its eigenvectors.
}

std::string gigabytes(double bytes) { return fmt::format("{:.3g} GB", 1e-9 * bytes); }

Solver best_solver(const SolverNeeds& needs, double usable_bytes) {
  constexpr Index large =
      8192;  // Below it one rank factorizes in seconds, if it can read what all have computed.
  if (needs.ranks > 1 && needs.against_distributed.empty() && (needs.inputs >= large || !needs.in_store))
    return Solver::distributed;
  return solver_bytes(Solver::cholesky, needs) <= usable_bytes ? Solver::cholesky
                                                               : Solver::conjugate_gradients;
}

}  // namespace

const char* solver_name(Solver solver) {
  switch (solver) {
    case Solver::cholesky:
      return "cholesky";
    case Solver::conjugate_gradients:
      return "cg";
    case Solver::distributed:
      return "distributed";
  }
  return "";
}

// Without a store all kernels are in memory besides what the solver holds.
double solver_bytes(Solver solver, const SolverNeeds& needs) {
  const double n = static_cast<double>(needs.inputs), kernels = needs.kernels == Kernels::nngp ? 1 : 2;
  const double held = needs.in_store ? 0 : kernels * static_cast<double>(needs.entry_bytes) * n * n;
  if (solver == Solver::conjugate_gradients) return held + iterative_numbers(n) * sizeof(double);
  if (solver == Solver::distributed)
    return (held + 1.1 * n * n * sizeof(double)) / static_cast<double>(needs.ranks);
  return held + factorized_matrices(needs) * n * n * sizeof(double);
}

SolverChoice choose_solver(std::optional<Solver> given, const SolverNeeds& needs, double memory_bytes) {
  // A tenth of the memory is left to everything else.
  constexpr double usable = 0.9;
  const Solver solver = given.value_or(best_solver(needs, usable * memory_bytes));
  std::string text =
      fmt::format("solver: {}, {} ({} {}for {} inputs, of {}", solver_name(solver),
                  given ? "given" : "chosen", gigabytes(solver_bytes(solver, needs)),
                  solver == Solver::distributed ? "a rank " : "", needs.inputs, gigabytes(memory_bytes));
  if (!given && solver == Solver::conjugate_gradients)
    text += fmt::format("; cholesky would take {}", gigabytes(solver_bytes(Solver::cholesky, needs)));
  if (!given && needs.ranks > 1 && solver != Solver::distributed && !needs.against_distributed.empty())
    text += "; not distributed: " + needs.against_distributed;
  return {solver, text + ")"};
}

}  // namespace widelimit::gp
