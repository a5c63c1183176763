// A stop that is asked for reaches every computation of this folder, and progress ends at all.
#include <doctest/doctest.h>

#include "specialization/support.hpp"
#include "support/seconds_to_stop.hpp"
#include "widelimit/error.hpp"
#include "widelimit/specialization/bayes.hpp"
#include "widelimit/specialization/flow.hpp"
#include "widelimit/specialization/hessian.hpp"
#include "widelimit/specialization/image_task.hpp"
#include "widelimit/specialization/quadrature.hpp"
#include "widelimit/specialization/trained_heads.hpp"

using namespace widelimit;
using namespace widelimit::specialization;

namespace {

/// CHECKs that body(run), which takes minutes, ends within a second of being asked to.
template <typename Body>
void check_stops(const char* what, const Body& body) {
  CAPTURE(what);
  CHECK(widelimit::testing::seconds_to_stop(
            [&](const std::stop_token& stop) { return body(RunControl{.stop = stop}); }) < 1);
}

const Prior flip = Prior::flip2(2, 2);

}  // namespace

TEST_CASE("stop: flows with every stepper, from within a step and between steps") {
  const auto samples = SampleSet<float>::draw(flip, {4, 3, 2000}, 1);
  const HeadParameters start = noise_start(HeadActivation::bayes, 3, 2, 1, 1);
  for (const FlowStepper stepper :
       {FlowStepper::euler, FlowStepper::runge_kutta4, FlowStepper::dormand_prince})
    check_stops("gradient_flow", [&](const RunControl& run) {
      return gradient_flow(HeadActivation::bayes, start, samples,
                           {.steps = 100'000'000, .stepper = stepper, .run = run});
    });
}

TEST_CASE("stop: SGD with vectors, as Gram matrix and on images") {
  const auto options = [](const RunControl& run) {
    return SgdOptions{.tokens = 4, .batch = 500, .steps = 10'000'000, .record = {}, .run = run};
  };
  constexpr HeadActivation bayes = HeadActivation::bayes;
  check_stops("sgd", [&](const RunControl& run) {
    return sgd(bayes, flip, random_start(bayes, 3, 2, 100, 1, 1), options(run));
  });
  check_stops("gram_sgd", [&](const RunControl& run) {
    return gram_sgd(bayes, flip, random_gram_start(bayes, 3, 2, 100, 1, 1), options(run));
  });
  const ImageTask task(Matrix<double>::Constant(4, 100, 7), {0, 1, 0, 1}, 1);
  check_stops("image_sgd", [&](const RunControl& run) {
    return image_sgd(bayes, task, random_start(bayes, 3, 2, 100, 1, 1).heads, options(run));
  });
  check_stops("image_loss", [&](const RunControl& run) {
    return image_loss(bayes, task, random_start(bayes, 3, 2, 100, 1, 1).heads, 4, 100'000'000, 1, run);
  });
  check_stops("ImageTask::bayes_risk",
              [&](const RunControl& run) { return task.bayes_risk(4, 100'000'000, 1, run); });
}

TEST_CASE("stop: averages by sampling and by quadrature, drawing, pruning") {
  constexpr HeadActivation bayes = HeadActivation::bayes;
  check_stops("bayes_risk", [](const RunControl& run) { return bayes_risk(flip, 5, 1'000'000'000, 1, run); });
  check_stops("split_rate_by_sampling", [](const RunControl& run) {
    return split_rate_by_sampling(bayes, 5, 3, 2, 2, 1'000'000'000, 1, run);
  });
  check_stops("split_rate_by_quadrature",
              [](const RunControl& run) { return split_rate_by_quadrature(bayes, 4, 3, 2, 2, 160, 9, run); });
  check_stops("bayes_risk_by_quadrature", [](const RunControl& run) {
    return bayes_risk_by_quadrature(flip, 2, {145, 8}, run);
  });
  check_stops("loss_by_quadrature", [](const RunControl& run) {
    const HeadParameters heads = bayes_optimal_heads(flip, 2);
    return loss_by_quadrature(bayes, heads, flip, 2, {140, 8}, run);
  });
  // What takes seconds is asked beforehand.
  std::stop_source source;
  source.request_stop();
  const RunControl stopped{.stop = source.get_token()};
  const auto samples = SampleSet<float>::draw(flip, {4, 3, 2000}, 1);
  const HeadParameters heads = noise_start(bayes, 3, 2, 1, 1);
  CHECK_THROWS_AS((void)SampleSet<float>::draw(flip, {4, 3, 2000}, 1, {.run = stopped}), Cancelled);
  CHECK_THROWS_AS((void)sampled_loss(bayes, heads, samples, LossDetail::gradients, stopped), Cancelled);
  CHECK_THROWS_AS((void)attention_mass(bayes, heads, samples, stopped), Cancelled);
  for (const PruneNormaliser normaliser : {PruneNormaliser::kept_heads, PruneNormaliser::full_model})
    CHECK_THROWS_AS((void)greedy_prune(bayes, heads, samples, normaliser, stopped), Cancelled);
}

TEST_CASE("progress goes to the end, and results do not depend on the number of threads") {
  const auto samples = SampleSet<float>::draw(flip, {4, 3, 3000}, 1);
  const HeadParameters start = noise_start(HeadActivation::bayes, 3, 2, 1, 1);
  std::ptrdiff_t last = -1, of = 0;
  const auto progress = [&](std::ptrdiff_t done, std::ptrdiff_t all) {
    CHECK(done == last + 1);
    last = done;
    of = all;
  };
  const auto ends = [&](int threads) {
    last = -1;
    return gradient_flow(HeadActivation::bayes, start, samples,
                         {.steps = 5, .run = {.threads = threads, .progress = progress}})
        .back();
  };
  const FlowPoint one = ends(1), all = ends(0), two = ends(2);
  CHECK(last == 5);
  CHECK(of == 5);
  for (const FlowPoint& other : {all, two}) {
    CHECK(one.parameters.m == other.parameters.m);
    CHECK(one.S == other.S);
  }
  const auto risk = [&](int threads) { return bayes_risk(flip, 5, 20'000, 1, {.threads = threads}).risk; };
  CHECK(risk(1) == risk(2));
  CHECK(risk(1) == risk(0));
}
