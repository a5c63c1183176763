// What threads change in numbers after the Gram matrices, as docs/engine.md (Determinism) says.
#include <doctest/doctest.h>

#include "problem.hpp"
#include "widelimit/gp/converged_flow.hpp"
#include "widelimit/gp/regression.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;

namespace {

struct Predicted {
  Matrix<double> mean, flow_mean;
  Vector<double> variance, flow_variance;
};

Predicted predicted(const KernelProblem& problem, int threads) {
  const Noise noise = RelativeRegulariser(0.01);
  const Vector<double> own = problem.nngp_test.diagonal();
  const Regression regression = Regression::fit(problem.nngp, problem.targets, noise, threads);
  const ConvergedFlow flow = ConvergedFlow::fit(problem.nngp, problem.ntk, problem.targets, noise, threads);
  return {regression.mean(problem.nngp_cross), flow.mean(problem.ntk_cross),
          regression.variance(problem.nngp_cross, own),
          flow.variance(problem.nngp_cross, problem.ntk_cross, own)};
}

bool same_bits(const Predicted& one, const Predicted& other) {
  return one.mean == other.mean && one.variance == other.variance && one.flow_mean == other.flow_mean &&
         one.flow_variance == other.flow_variance;
}

}  // namespace

TEST_CASE(
    "fits and predictions repeat their bits with the same number of threads, and agree to rounding with "
    "others") {
  for (const Index inputs : {300, 700}) {
    const KernelProblem problem = make_problem(inputs, 40, 2, 6);
    const Predicted one = predicted(problem, 1), two = predicted(problem, 2);
    CHECK(same_bits(one, predicted(problem, 1)));
    CHECK(same_bits(two, predicted(problem, 2)));
    CHECK(relative_difference(two.mean, one.mean) < 1e-12);
    CHECK(relative_difference(two.flow_mean, one.flow_mean) < 1e-12);
    CHECK(relative_difference(two.variance, one.variance) < 1e-12);
    CHECK(relative_difference(two.flow_variance, one.flow_variance) < 1e-12);
  }
}
