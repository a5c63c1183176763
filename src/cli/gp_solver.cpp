#include "cli/gp_solver.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace widelimit::cli {
namespace {

const char* name_of(Solver solver) { return solver == Solver::cholesky ? "cholesky" : "cg"; }

}  // namespace

double solver_bytes(Solver solver, const SolverNeeds& needs) {
  constexpr double block_of_a_pass =
      0.1;  // Preconditioner: up to n / 10 columns of double, and what it is made of.
  const double n = static_cast<double>(needs.inputs), kernels = needs.kernels == Kernels::nngp ? 1 : 2;
  double doubles = 4 * block_of_a_pass;
  if (solver == Solver::cholesky) {
    if (needs.kernels == Kernels::nngp)
      doubles = 1.1;  // The matrix, in place.
    else
      doubles = needs.finite_times ? 4.1 : 2.1;  // Both kernels; eigenvectors and their workspace.
  }
  return n * n * (kernels * static_cast<double>(needs.entry_bytes) + doubles * sizeof(double));
}

SolverChoice choose_solver(std::optional<Solver> given, const SolverNeeds& needs, double memory_bytes) {
  constexpr double ample = 0.25, usable = 0.9;
  const double factorized = solver_bytes(Solver::cholesky, needs);
  const Solver solver =
      given.value_or(factorized <= usable * memory_bytes ? Solver::cholesky : Solver::conjugate_gradients);
  if (!given && factorized <= ample * memory_bytes) return {solver, ""};
  return {solver, fmt::format("solver: {} ({:.3g} GB for {} inputs, of {:.3g} GB{})", name_of(solver),
                              1e-9 * solver_bytes(solver, needs), needs.inputs, 1e-9 * memory_bytes,
                              !given && solver == Solver::conjugate_gradients
                                  ? fmt::format("; cholesky would take {:.3g} GB", 1e-9 * factorized)
                                  : "")};
}

double physical_memory_bytes() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
}

}  // namespace widelimit::cli
