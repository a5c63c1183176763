#include "widelimit/gp/posterior.hpp"

#include <doctest/doctest.h>

#include "problem.hpp"

namespace widelimit::gp {
namespace {

using gp_test::make_problem;
using gp_test::relative_difference;

TEST_CASE("posterior: trained networks keep the weights of their mean at their time") {
  const auto p = make_problem(20, 5, 2, 3);
  const GradientFlow flow = GradientFlow::fit(p.nngp, p.ntk, p.targets, RelativeRegulariser(1e-3));
  for (const double time : {0.0, 0.7, infinite_time}) {
    const TrainedNetworks trained(flow, time);
    CHECK(trained.time == time);
    if (time == 0)
      CHECK(trained.weights.isZero(0));
    else
      CHECK(relative_difference(p.ntk_cross * trained.weights, flow.mean(time, p.ntk_cross)) < 1e-10);
  }
}

TEST_CASE("posterior: weights of conjugate gradients say of which kernel they are") {
  CHECK(!IterativeWeights{"nngp", Matrix<double>::Zero(2, 1), 0.1, 1e-10}.is_trained());
  CHECK(IterativeWeights{"ntk", Matrix<double>::Zero(2, 1), 0.1, 1e-10}.is_trained());
}

}  // namespace
}  // namespace widelimit::gp
