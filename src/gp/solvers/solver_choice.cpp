#include "widelimit/gp/solver_choice.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "widelimit/gp/resources.hpp"

namespace widelimit::gp {
namespace {

std::string gigabytes(double bytes) { return fmt::format("{:.3g} GB", 1e-9 * bytes); }

Solver best_solver(const Workload& work, double usable_bytes) {
  const SolverNeeds& needs = work.needs;
  constexpr Index large =
      8192;  // Below it one rank factorizes in seconds, if it can read what all have computed.
  if (needs.ranks > 1 && needs.against_distributed.empty() && (needs.inputs >= large || !needs.in_store))
    return Solver::distributed;
  return solver_bytes(Solver::cholesky, work) <= usable_bytes ? Solver::cholesky
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

double solver_bytes(Solver solver, const Workload& work) {
  double most = 0;
  for (const MemoryPhase& phase : memory_phases(work, solver)) most = std::max(most, phase.bytes());
  return most;
}

SolverChoice choose_solver(std::optional<Solver> given, const Workload& work, double memory_bytes) {
  const SolverNeeds& needs = work.needs;
  // A tenth of the memory is left to everything else.
  constexpr double usable = 0.9;
  const Solver solver = given.value_or(best_solver(work, usable * memory_bytes));
  std::string text =
      fmt::format("solver: {}, {} ({} {}for {} inputs, of {}", solver_name(solver),
                  given ? "given" : "chosen", gigabytes(solver_bytes(solver, work)),
                  solver == Solver::distributed ? "a rank " : "", needs.inputs, gigabytes(memory_bytes));
  if (!given && solver == Solver::conjugate_gradients)
    text += fmt::format("; cholesky would take {}", gigabytes(solver_bytes(Solver::cholesky, work)));
  if (!given && needs.ranks > 1 && solver != Solver::distributed && !needs.against_distributed.empty())
    text += "; not distributed: " + needs.against_distributed;
  return {solver, text + ")"};
}

}  // namespace widelimit::gp
