#include "widelimit/specialization/sgd_runs.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "support/error_message.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::specialization;

namespace {

SgdSetup small_setup(SgdForm form) {
  SgdSetup setup;
  setup.activation = HeadActivation::softmax1;
  setup.prior = Prior::flip2(10, 10);
  setup.heads = 2;
  setup.dimension = 60;
  setup.form = form;
  setup.options.tokens = 3;
  setup.options.batch = 60;
  setup.options.gamma = 0.1;
  setup.options.steps = 20;
  setup.options.record = record_every(5, 20);
  setup.options.seed = 3;
  return setup;
}

}  // namespace

TEST_CASE("sgd runs: both forms start where their seed says, or as planted") {
  for (const SgdForm form : {SgdForm::gram, SgdForm::vector}) {
    SgdSetup setup = small_setup(form);
    const auto points = sgd_from_random_start(setup);
    REQUIRE(points.size() == 5);
    CHECK(points.back().tau == doctest::Approx(2));
    CHECK(points.back().loss < points.front().loss);
    CHECK(sgd_from_random_start(setup).back().loss == points.back().loss);
    setup.options.seed = 4;
    CHECK(sgd_from_random_start(setup).front().overlaps.m != points.front().overlaps.m);
    setup.planted_m = Matrix<double>::Constant(2, 2, 0.25);
    CHECK((sgd_from_random_start(setup).front().overlaps.m - setup.planted_m).cwiseAbs().maxCoeff() < 1e-12);
  }
}

TEST_CASE("sgd runs: a wide SGD follows the flow beside it") {
  SgdSetup setup = small_setup(SgdForm::gram);
  setup.dimension = setup.options.batch = 100'000;
  const auto points = sgd_from_random_start(setup);
  const MatchedFlow matched = matched_flow(points.front());
  const auto flow = flow_beside(setup, points, matched, {.samples = 50'000});
  REQUIRE(flow.size() == points.size());
  for (std::size_t k = 0; k < flow.size(); ++k) {
    CHECK(flow[k].tau == doctest::Approx(points[k].tau));
    CHECK((flow[k].parameters.m * matched.spike_root - points[k].overlaps.m).cwiseAbs().maxCoeff() < 0.03);
    CHECK((flow[k].S - points[k].overlaps.S).cwiseAbs().maxCoeff() < 0.03);
  }
}

TEST_CASE("sgd runs: SGD must be recorded at steps of the flow") {
  const auto points = sgd_from_random_start(small_setup(SgdForm::gram));
  CHECK(flow_steps_at(points, 0.1) == std::vector<Index>{0, 5, 10, 15, 20});
  CHECK(widelimit::testing::error_message<ArgumentError>([&] { return flow_steps_at(points, 0.3).size(); }) ==
        "SGD is recorded at tau = 0.5, which is no multiple of the flow's step 0.3; change records or step");
}
