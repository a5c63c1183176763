#include "widelimit/gp/kernel_solver.hpp"

#include <doctest/doctest.h>

#include "problem.hpp"
#include "widelimit/gp/gradient_flow.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;

namespace {

std::unique_ptr<GramSource> source_of(const Matrix<double>& nngp, const Matrix<double>& ntk) {
  GramResult<double> kernels;
  kernels.nngp = nngp;
  kernels.ntk = ntk;
  return gram_in_memory(std::move(kernels));
}

GramSources sources_of(const KernelProblem& p) {
  GramSources grams;
  grams.train = source_of(p.nngp, p.ntk);
  grams.validation = source_of(p.nngp_cross, p.ntk_cross);
  grams.test = source_of(p.nngp_cross, p.ntk_cross);
  grams.test_variances = grams.validation_variances = p.nngp_test.diagonal();
  return grams;
}

}  // namespace

TEST_CASE("kernel solver: factorizations and conjugate gradients choose and predict alike, for each output") {
  const KernelProblem p = make_problem(40, 12, 2, 5);
  for (const std::string kernel : {"nngp", "ntk"})
    for (const bool apart : {false, true}) {
      CAPTURE(kernel);
      CAPTURE(apart);
      const SolverTargets targets{p.targets, random_matrix(12, 2, 9), apart};
      const SolverOptions options{.criterion = Criterion::mean_squared_error,
                                  .candidates = {1e-2, 0.1, 1},
                                  .times = {infinite_time},
                                  .residual = 1e-12};
      GramSources first = sources_of(p), second = sources_of(p);
      const auto direct = direct_solver(kernel, first, targets, options, false);
      const auto iterative = iterative_solver(kernel, second, targets, options);
      const auto by_direct = direct->select(), by_iterations = iterative->select();
      REQUIRE(by_direct.size() == (apart ? 2 : 1));
      for (std::size_t c = 0; c < by_direct.size(); ++c)
        CHECK(by_direct[c].best.value() == by_iterations[c].best.value());
      const std::vector<Index> outputs = apart ? std::vector<Index>{1} : std::vector<Index>{0, 1};
      const double regulariser = by_direct.back().best.value();
      const auto a = direct->fit(outputs, regulariser, true), b = iterative->fit(outputs, regulariser, true);
      CHECK(relative_difference(a[0]->mean(), b[0]->mean()) < 1e-8);
      CHECK(relative_difference(a[0]->variance(), b[0]->variance()) < 1e-7);
      CHECK(relative_difference(a[0]->amplitudes(apart), b[0]->amplitudes(apart)) < 1e-8);
      CHECK(a[0]->lambda() == doctest::Approx(b[0]->lambda()).epsilon(1e-12));
      CHECK(a[0]->leave_one_out().has_value());
      CHECK_FALSE(a[0]->solution());
      CHECK(b[0]->solution()->relative_residual <= 1e-12);
    }
}
