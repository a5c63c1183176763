#include "widelimit/gp/solver_choice.hpp"

#include <doctest/doctest.h>

using namespace widelimit;
using namespace widelimit::gp;

TEST_CASE("solver choice: memory decides where nobody does, and is said") {
  const SolverNeeds both{.inputs = 60'000, .entry_bytes = 4, .kernels = Kernels::both, .finite_times = false};
  const double cholesky = solver_bytes(Solver::cholesky, both), n = 60'000;
  CHECK(cholesky == doctest::Approx(n * n * (2 * 4 + 2.1 * 8)));
  CHECK(solver_bytes(Solver::conjugate_gradients, both) < 0.5 * cholesky);
  const SolverChoice small = choose_solver({}, both, 24e9);
  CHECK(small.solver == Solver::conjugate_gradients);
  CHECK(small.text.find("solver: cg, chosen (") == 0);
  CHECK(small.text.find("; cholesky would take 89.3 GB)") != std::string::npos);
  const SolverChoice enough = choose_solver({}, both, 128e9);
  CHECK(enough.solver == Solver::cholesky);
  CHECK(enough.text == "solver: cholesky, chosen (89.3 GB for 60000 inputs, of 128 GB)");
  CHECK(choose_solver(Solver::cholesky, both, 24e9).solver == Solver::cholesky);
  CHECK(choose_solver(Solver::conjugate_gradients, both, 1e12).text.find("solver: cg, given (") == 0);
  SolverNeeds times = both;
  times.finite_times = true;
  CHECK(solver_bytes(Solver::cholesky, times) > cholesky);
  CHECK(solver_bytes(Solver::cholesky, times) < 1.2 * cholesky);
}

TEST_CASE("solver choice: out of a store, 60,000 inputs are solved for within 6 GB") {
  const SolverNeeds stored{
      .inputs = 60'000, .entry_bytes = 4, .kernels = Kernels::both, .finite_times = false, .in_store = true};
  CHECK(solver_bytes(Solver::conjugate_gradients, stored) < 6e9);
  CHECK(solver_bytes(Solver::cholesky, stored) == doctest::Approx(2.1 * 8 * 3.6e9));
}

TEST_CASE("solver choice: ranks solve large matrices together, if they can") {
  SolverNeeds needs{.inputs = 20'000,
                    .entry_bytes = 4,
                    .kernels = Kernels::nngp,
                    .finite_times = false,
                    .in_store = true,
                    .ranks = 4,
                    .against_distributed = ""};
  const SolverChoice together = choose_solver({}, needs, 24e9);
  CHECK(together.solver == Solver::distributed);
  CHECK(together.text == "solver: distributed, chosen (0.88 GB a rank for 20000 inputs, of 24 GB)");
  needs.against_distributed = "it knows networks after training only, no --time";
  const SolverChoice alone = choose_solver({}, needs, 24e9);
  CHECK(alone.solver == Solver::cholesky);
  CHECK(alone.text.find("; not distributed: it knows networks after training only") != std::string::npos);
  needs.against_distributed = "";
  needs.inputs = 2000;
  CHECK(choose_solver({}, needs, 24e9).solver == Solver::cholesky);
  needs.in_store = false;
  CHECK(choose_solver({}, needs, 24e9).solver == Solver::distributed);
}
