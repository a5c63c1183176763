#include "widelimit/specialization/trained_starts.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "support.hpp"
#include "widelimit/error.hpp"
#include "widelimit/specialization/hessian.hpp"
#include "widelimit/specialization/trained_heads.hpp"

using namespace widelimit;
using namespace widelimit::specialization;
using namespace widelimit::specialization::testing;

namespace {

TrainingSetup small_setup() {
  TrainingSetup setup;
  setup.activation = HeadActivation::bayes;
  setup.prior = Prior::spikes(2, 9);
  setup.tokens = 3;
  setup.heads = 2;
  setup.flow.step = 0.5;
  setup.flow.steps = 20'000;
  setup.samples = 1'000;
  setup.fresh_samples = 20'000;
  setup.starts = 3;
  return setup;
}

std::vector<TrainedStart> with_losses(const std::vector<double>& losses) {
  std::vector<TrainedStart> starts(losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i) starts[i].loss = losses[i];
  return starts;
}

}  // namespace

TEST_CASE("trained starts: flows run to rest, each from a start and samples of its own") {
  const TrainingSetup setup = small_setup();
  const auto starts = train_from_starts(setup);
  REQUIRE(starts.size() == 3);
  for (std::size_t k = 0; k < 3; ++k) {
    CHECK(starts[k].seed == 1 + k);
    CHECK(starts[k].converged);
    CHECK(starts[k].end().gradient < 1e-4);
    CHECK(starts[k].end().tau < 10'000);
    // Bayes heads at the posterior reach the risk of two spikes of variance 9.
    CHECK(starts[k].loss < 0.12);
  }
  CHECK(starts[0].loss != starts[1].loss);
  // The first starts do not depend on how many there are, nor does a start on the ones before it.
  TrainingSetup other = setup;
  other.starts = 1;
  CHECK(train_from_starts(other)[0].loss == starts[0].loss);
}

/// Risks are those of samples that no start has seen.
TEST_CASE("trained starts: fresh samples share nothing with the training sets") {
  const TrainingSetup setup = small_setup();
  const auto fresh = fresh_samples(setup);
  for (std::uint64_t k = 0; k < 3; ++k) {
    const auto training =
        SampleSet<float>::draw(setup.prior, {setup.tokens, setup.heads, setup.samples}, setup.seed + k);
    for (Eigen::Index sample = 0; sample < 20; ++sample)
      CHECK(fresh.value(sample, 0, setup.prior.features()) !=
            training.value(sample, 0, setup.prior.features()));
  }
}

TEST_CASE("trained starts: a flow that ran out of time says that it is not at rest") {
  TrainingSetup setup = small_setup();
  setup.flow.steps = 20;
  setup.starts = 1;
  const auto short_run = train_from_starts(setup);
  CHECK_FALSE(short_run[0].converged);
  CHECK(short_run[0].end().tau == 10);
  CHECK(short_run[0].end().gradient > 1e-4);
  setup.flow.stop_gradient = 0;
  CHECK_FALSE(train_from_starts(setup)[0].converged);
}

TEST_CASE("trained starts: losses are those of the fresh samples") {
  TrainingSetup setup = small_setup();
  setup.flow.steps = 10;
  setup.starts = 2;
  const auto fresh = fresh_samples(setup);
  for (const TrainedStart& start : train_from_starts(setup)) {
    const SampledLoss loss =
        sampled_loss(setup.activation, start.end().parameters, fresh, LossDetail::loss_only);
    CHECK(start.loss == loss.loss);
    CHECK(start.standard_error == loss.standard_error);
  }
}

TEST_CASE("trained starts: from given parameters the samples alone differ") {
  TrainingSetup setup = small_setup();
  setup.flow.steps = 0;
  const HeadParameters given = noise_start(setup.activation, 2, 2, 0.5, 77);
  const auto starts = train_from_starts(setup, given);
  for (const TrainedStart& start : starts) CHECK(start.end().parameters.m == given.m);
  CHECK(starts[0].end().loss != starts[1].end().loss);
}

/// All heads along the mean of flip2, as a flow from a common start ends: its gradient is small, and it is a saddle.
TEST_CASE("trained starts: saddles are named, and left if asked for") {
  TrainingSetup setup;
  setup.prior = Prior::flip2(2, 2);
  setup.tokens = 3;
  setup.heads = 2;
  setup.flow.step = 0.5;
  setup.flow.steps = 2'000;
  setup.flow.record = {0, 100, 1'000};
  setup.samples = 4'000;
  setup.fresh_samples = 4'000;
  setup.symmetry = SampleSymmetry::closed;
  setup.starts = 1;
  const HeadParameters common =
      with_initial_offsets(setup.activation, Matrix<double>::Zero(2, 2), Matrix<double>::Identity(2, 2));
  setup.leave_saddles = false;
  const TrainedStart rested = train_from_starts(setup, common)[0];
  REQUIRE(rested.converged);
  CHECK(rested.at_saddle());
  CHECK(-*rested.curvature ==
        doctest::Approx(split_rate_by_quadrature(setup.activation, 3, 2, 2, 2).rate).epsilon(0.1));
  CHECK(rested.left_saddles.empty());
  CHECK(max_split(rested.end().parameters.m) < 1e-3);

  setup.leave_saddles = true;
  const TrainedStart led_on = train_from_starts(setup, common)[0];
  REQUIRE(led_on.left_saddles.size() == 1);
  CHECK(led_on.left_saddles[0].tau == rested.end().tau);
  CHECK(led_on.left_saddles[0].loss == rested.end().loss);
  CHECK(led_on.left_saddles[0].rate == -*rested.curvature);
  CHECK(max_split(led_on.end().parameters.m) > 0.5);
  CHECK(led_on.loss < rested.loss - 0.001);
  CHECK_FALSE(led_on.at_saddle());
  // Times go on increasing, records keep their places, and no more time is taken than was given.
  for (std::size_t i = 1; i < led_on.points.size(); ++i)
    CHECK(led_on.points[i].tau > led_on.points[i - 1].tau);
  CHECK(led_on.end().tau <= 1'000);
}

TEST_CASE("trained starts: with batch noise, or without rest, nothing is said of saddles") {
  TrainingSetup setup = small_setup();
  setup.starts = 1;
  setup.flow.batch_noise = 1e-9;
  CHECK_FALSE(train_from_starts(setup)[0].curvature);
  setup.flow.batch_noise = 0;
  setup.flow.steps = 20;
  CHECK_FALSE(train_from_starts(setup)[0].curvature);
}

TEST_CASE("trained starts: medians and ranges") {
  CHECK(median_start(with_losses({0.3, 0.1, 0.2})) == 2);
  CHECK(median_start(with_losses({0.3, 0.1, 0.2, 0.4})) == 2);
  const Spread odd = loss_spread(with_losses({0.3, 0.1, 0.2}));
  CHECK(odd.median == 0.2);
  CHECK(odd.least == 0.1);
  CHECK(odd.greatest == 0.3);
  CHECK(spread_of(std::vector<double>{1, 2, 4, 9}).median == 3);
  CHECK(message_of([] { (void)median_start({}); }) == "median_start: expected at least one start, got none");
  TrainingSetup none = small_setup();
  none.starts = 0;
  CHECK(message_of([&] { (void)train_from_starts(none); }) ==
        "train_from_starts: starts must be at least 1, got 0");
}
