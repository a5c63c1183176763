#include "cli/gp_solver.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "cli/program.hpp"

using namespace widelimit;
using namespace widelimit::cli;
using widelimit::testing::file_text;
using widelimit::testing::run_program;
using widelimit::testing::TemporaryFolder;

namespace {

nlohmann::json predictions(const std::string& options) {
  const TemporaryFolder folder;
  const auto result = run_program(
      "gp --network fcn --data sample --train 60 --validation 20 --test 20 --size 6 --precision double "
      "--amplitude 2 "
      "--no-report --no-pictures --out " +
      folder.string() + options);
  REQUIRE(result.code == 0);
  return nlohmann::json::parse(file_text(folder / "results.json")).at("results");
}

}  // namespace

TEST_CASE("gp: conjugate gradients predict what Cholesky factorizations do") {
  const nlohmann::json expected = predictions(" --regulariser 0.01 --solver cholesky");
  const nlohmann::json found = predictions(" --regulariser 0.01 --solver cg");
  REQUIRE(found.size() == 2);
  for (std::size_t i = 0; i < 2; ++i)
    for (const char* score : {"accuracy", "mean_squared_error", "negative_log_predictive_density"}) {
      CAPTURE(score);
      CHECK(found[i].at(score).get<double>() ==
            doctest::Approx(expected[i].at(score).get<double>()).epsilon(1e-8));
    }
}

TEST_CASE("gp: what the solvers do not serve is refused before anything is computed") {
  const std::string command = "gp --network fcn --data sample --train 20 --validation 10 --test 10 --size 6 ";
  const auto amplitude = run_program(command + "--solver cg");
  CHECK(amplitude.code != 0);
  CHECK(amplitude.errors.find("cg cannot fit the amplitude of the NTK; give --amplitude") !=
        std::string::npos);
  const auto times = run_program(command + "--solver cg --amplitude 1 --time 2");
  CHECK(times.code != 0);
  CHECK(times.errors.find("cg knows networks after training only, no --time") != std::string::npos);
  const auto unknown = run_program(command + "--solver lu");
  CHECK(unknown.code != 0);
  CHECK(unknown.errors.find("--solver") != std::string::npos);
  const auto told = run_program(command + "--kernel nngp --solver cg");
  REQUIRE(told.code == 0);
  CHECK(told.output.find("\nsolver: cg (") != std::string::npos);
}

TEST_CASE("gp solver: memory decides where nobody does, and is said where it matters") {
  const SolverNeeds both{.inputs = 60'000, .entry_bytes = 4, .kernels = Kernels::both, .finite_times = false};
  const double cholesky = solver_bytes(Solver::cholesky, both), n = 60'000;
  CHECK(cholesky == doctest::Approx(n * n * (2 * 4 + 2.1 * 8)));
  CHECK(solver_bytes(Solver::conjugate_gradients, both) < 0.5 * cholesky);
  const SolverChoice small = choose_solver({}, both, 24e9);
  CHECK(small.solver == Solver::conjugate_gradients);
  CHECK(small.text.find("solver: cg (") == 0);
  CHECK(small.text.find("; cholesky would take 89.3 GB") != std::string::npos);
  const SolverChoice enough = choose_solver({}, both, 128e9);
  CHECK(enough.solver == Solver::cholesky);
  CHECK(enough.text.find("solver: cholesky (89.3 GB for 60000 inputs, of 128 GB)") == 0);
  CHECK(choose_solver({}, both, 1e12).text.empty());
  CHECK(choose_solver(Solver::cholesky, both, 24e9).solver == Solver::cholesky);
  CHECK(choose_solver(Solver::conjugate_gradients, both, 1e12).text.find("solver: cg") == 0);
  SolverNeeds times = both;
  times.finite_times = true;
  CHECK(solver_bytes(Solver::cholesky, times) > 1.5 * cholesky);
  CHECK(physical_memory_bytes() > 1e8);
}
