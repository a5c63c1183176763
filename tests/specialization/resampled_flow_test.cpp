#include "widelimit/specialization/resampled_flow.hpp"

#include <doctest/doctest.h>

#include "widelimit/specialization/seeds.hpp"

namespace widelimit::specialization {

TEST_CASE("resampled flow: the kept flow is the gradient flow, the fresh one differs, both begin alike") {
  FlowPairSetup setup{.activation = HeadActivation::softmax1,
                      .prior = Prior::spikes(2, 10),
                      .shape = {3, 2, 400},
                      .samples = {},
                      .flow = {},
                      .eta = 0.5};
  setup.flow.step = 0.5;
  setup.flow.steps = 4;
  setup.flow.record = {0, 2, 4};
  const FlowPair pair = flow_pair(setup, 7);
  REQUIRE(pair.kept.size() == 3);
  REQUIRE(pair.fresh.size() == 3);
  const HeadParameters start = noise_start(setup.activation, 2, 2, 0.5, 7 + start_seed);
  const auto alone = gradient_flow(setup.activation, start,
                                   SampleSet<float>::draw(setup.prior, setup.shape, 7, {}), setup.flow);
  for (std::size_t k = 0; k < 3; ++k) {
    CHECK(pair.kept[k].parameters.m == alone[k].parameters.m);
    CHECK(pair.fresh[k].tau == doctest::Approx(pair.kept[k].tau));
  }
  CHECK(pair.fresh[0].parameters.m == start.m);
  CHECK(pair.fresh[2].parameters.m != pair.kept[2].parameters.m);
  // Samples of both are of one distribution, so that the flows stay near each other.
  CHECK((pair.fresh[2].parameters.m - pair.kept[2].parameters.m).cwiseAbs().maxCoeff() < 0.2);
}

}  // namespace widelimit::specialization
