#include "widelimit/specialization/first_times.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::specialization;

namespace {

TimedFlows small_flows() {
  TimedFlows flows;
  flows.prior = Prior::flip2(10, 10);
  flows.heads = 2;
  flows.tokens = 3;
  flows.dimension = 10'000;
  flows.samples = 4'000;
  flows.steps = 700;
  return flows;
}

}  // namespace

TEST_CASE("first times: the first value above the bound counts, and is kept") {
  FirstTimes times(2);
  times.see(1, Vector<double>{{0.2, 0.1}}, 0.2);
  CHECK_FALSE(times.times[0].has_value());
  times.see(2, Vector<double>{{0.3, 0.1}}, 0.2);
  times.see(3, Vector<double>{{0.1, 0.1}}, 0.2);
  CHECK(times.times[0] == 2);
  CHECK_FALSE(times.all());
  times.see(4, Vector<double>{{0.1, 0.4}}, 0.2);
  CHECK(times.all());
  CHECK(times.times[1] == 4);
}

TEST_CASE("first times: heads that start smaller specialise later") {
  TimedFlows flows = small_flows();
  flows.activation = HeadActivation::bayes;
  flows.dimension = 1000;
  flows.step = 0.2;
  const FirstTimes early = head_split_time(flows, 1, 1), late = head_split_time(flows, 1e-2, 1);
  REQUIRE(early.all());
  REQUIRE(late.all());
  CHECK(early.end == RunEnd::specialised);
  CHECK(*late.times[0] > *early.times[0] + 1);
  CHECK(head_split_time(flows, 1, 1).times == early.times);
}

TEST_CASE("first times: of each feature, and why a flow ended") {
  TimedFlows flows = small_flows();
  flows.delta = 0.1;
  CHECK(feature_split_times(flows, 1, 1).times.size() == 2);
  flows.delta = 1e6;
  flows.steps = 20;
  CHECK(head_split_time(flows, 1, 1).end == RunEnd::tau);
  flows.stop_gradient = 1e6;
  CHECK(head_split_time(flows, 1, 1).end == RunEnd::rest);
}

TEST_CASE("first times: SGD, piece by piece, specialises when the flow from its start does") {
  TimedFlows runs = small_flows();
  runs.activation = HeadActivation::bayes;
  runs.dimension = 2'000;
  runs.step = 0.1;
  const FirstTimes sgd = head_split_time_of_sgd(runs, 0, 1e-2, 3), flow = head_split_time(runs, 1e-2, 3);
  REQUIRE(sgd.all());
  REQUIRE(flow.all());
  CHECK(sgd.end == RunEnd::specialised);
  // Both leave the same saddle from the same start; batches of D move the time by a part of it.
  CHECK(*sgd.times[0] > 2 * runs.step * 50);
  CHECK(std::abs(*sgd.times[0] - *flow.times[0]) < 0.35 * *flow.times[0]);
  CHECK(head_split_time_of_sgd(runs, 0, 1e-2, 3).times == sgd.times);
  CHECK(head_split_time_of_sgd(runs, 0, 1e-2, 4).times != sgd.times);
  runs.steps = 20;
  CHECK(head_split_time_of_sgd(runs, 0, 1e-2, 3).end == RunEnd::tau);
}
