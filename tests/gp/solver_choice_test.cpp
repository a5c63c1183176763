#include "widelimit/gp/solver_choice.hpp"

#include <doctest/doctest.h>

#include "widelimit/gp/resources.hpp"

using namespace widelimit;
using namespace widelimit::gp;

namespace {

Workload with(const SolverNeeds& needs) { return {.needs = needs}; }

}  // namespace

TEST_CASE("solver choice: memory decides where nobody does, and is said") {
  const SolverNeeds both{.inputs = 60'000, .entry_bytes = 4, .kernels = Kernels::both, .finite_times = false};
  const double cholesky = solver_bytes(Solver::cholesky, with(both)), n = 60'000;
  // Two kernels in float, both widened, and columns of 1,000 inputs left out.
  CHECK(cholesky == doctest::Approx(n * n * (2 * 4 + 2 * 8)).epsilon(0.05));
  CHECK(cholesky > n * n * (2 * 4 + 2 * 8));
  CHECK(solver_bytes(Solver::conjugate_gradients, with(both)) < 0.5 * cholesky);
  const SolverChoice small = choose_solver({}, with(both), 24e9);
  CHECK(small.solver == Solver::conjugate_gradients);
  CHECK(small.text.find("solver: cg, chosen (") == 0);
  CHECK(small.text.find("; cholesky would take 88.2 GB)") != std::string::npos);
  const SolverChoice enough = choose_solver({}, with(both), 128e9);
  CHECK(enough.solver == Solver::cholesky);
  CHECK(enough.text == "solver: cholesky, chosen (88.2 GB for 60000 inputs, of 128 GB)");
  CHECK(choose_solver(Solver::cholesky, with(both), 24e9).solver == Solver::cholesky);
  CHECK(choose_solver(Solver::conjugate_gradients, with(both), 1e12).text.find("solver: cg, given (") == 0);
  SolverNeeds given = both, times = both;
  given.chooses = times.chooses = false;
  times.finite_times = true;
  CHECK(solver_bytes(Solver::cholesky, with(given)) < cholesky);
  CHECK(solver_bytes(Solver::cholesky, with(times)) >= solver_bytes(Solver::cholesky, with(given)));
}

TEST_CASE("solver choice: out of a store, 60,000 inputs are solved for within 6 GB") {
  const SolverNeeds stored{
      .inputs = 60'000, .entry_bytes = 4, .kernels = Kernels::both, .finite_times = false, .in_store = true};
  CHECK(solver_bytes(Solver::conjugate_gradients, with(stored)) < 6e9);
  CHECK(solver_bytes(Solver::cholesky, with(stored)) == doctest::Approx(2 * 8 * 3.6e9).epsilon(0.05));
}

TEST_CASE("solver choice: ranks solve large matrices together, if they can") {
  SolverNeeds needs{.inputs = 20'000,
                    .entry_bytes = 4,
                    .kernels = Kernels::nngp,
                    .finite_times = false,
                    .in_store = true,
                    .ranks = 4,
                    .against_distributed = ""};
  const SolverChoice together = choose_solver({}, with(needs), 24e9);
  CHECK(together.solver == Solver::distributed);
  CHECK(together.text == "solver: distributed, chosen (0.911 GB a rank for 20000 inputs, of 24 GB)");
  needs.against_distributed = "it knows networks after training only, no --time";
  const SolverChoice alone = choose_solver({}, with(needs), 24e9);
  CHECK(alone.solver == Solver::cholesky);
  CHECK(alone.text.find("; not distributed: it knows networks after training only") != std::string::npos);
  needs.against_distributed = "";
  needs.inputs = 2000;
  CHECK(choose_solver({}, with(needs), 24e9).solver == Solver::cholesky);
  needs.in_store = false;
  CHECK(choose_solver({}, with(needs), 24e9).solver == Solver::distributed);
}
