#include "widelimit/specialization/first_times.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "support/error_message.hpp"
#include "widelimit/error.hpp"
#include "widelimit/specialization/flow.hpp"
#include "widelimit/specialization/seeds.hpp"
#include "widelimit/specialization/trained_heads.hpp"

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

TEST_CASE("first times: of classes of images, those that the whole run of SGD shows") {
  numerics::RandomStream random(1);
  Matrix<double> pixels(30, 12);
  std::vector<int> labels;
  for (Index i = 0; i < 30; ++i) {
    labels.push_back(static_cast<int>(i % 3));
    for (Index d = 0; d < 12; ++d) pixels(i, d) = (d % 3 == i % 3 ? 200 : 20) + 30 * random.uniform();
  }
  const ImageTask task(pixels, labels, 0.8);
  SgdOptions options;
  options.tokens = 3;
  options.batch = 12;
  options.gamma = 0.2;
  options.seed = 4;
  options.steps = 50;
  const FirstTimes found = class_split_times_of_sgd(HeadActivation::softmax, 3, task, 1, 0.05, options);
  REQUIRE(found.times.size() == 3);
  // The first 50 steps are one run of SGD, with the batches of its own seed.
  SgdOptions whole = options;
  whole.seed = options.seed * 1'000'003;
  whole.record = record_every(1, 50);
  FirstTimes expected(3);
  const HeadVectors start =
      random_start(HeadActivation::softmax, 3, 1, 12, 1, options.seed + start_seed).heads;
  for (const ImageSgdPoint& point : image_sgd(HeadActivation::softmax, task, start, whole))
    expected.see(point.tau, feature_splits(point.heads.k * task.class_means().transpose()), 0.05);
  CHECK(found.times == expected.times);
  CHECK(found.times[0].has_value());
}

TEST_CASE("first times: a single head has none, which is said") {
  TimedFlows flows = small_flows();
  flows.heads = 1;
  const auto refused = [](const auto& run) {
    return widelimit::testing::error_message<ArgumentError>(run).find(
               "heads H must be at least 2, got 1: a single head has no other") != std::string::npos;
  };
  CHECK(refused([&] { return head_split_time(flows, 1, 1).end; }));
  CHECK(refused([&] { return feature_split_times(flows, 1, 1).end; }));
  CHECK(refused([&] { return head_split_time_of_sgd(flows, 0, 1, 1).end; }));
}
