#include "widelimit/specialization/flow.hpp"

#include <doctest/doctest.h>

#include <Eigen/QR>
#include <cmath>

#include "support.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/symmetric_root.hpp"
#include "widelimit/specialization/order_parameters.hpp"

using namespace widelimit;
using namespace widelimit::specialization;
using namespace widelimit::specialization::testing;
using Eigen::Index;

namespace {

struct Start {
  HeadParameters parameters;
  SampleSet<double> samples;
};

Start generic_start(HeadActivation activation, std::uint64_t seed, Index count = 400) {
  numerics::RandomStream random(seed);
  HeadParameters parameters = random_parameters(activation, 3, 2, random);
  return {parameters, SampleSet<double>::draw(Prior::flip2(2, 2), {4, 3, count}, seed)};
}

double state_distance(const FlowPoint& a, const FlowPoint& b) {
  return std::max({distance(a.parameters.m, b.parameters.m), distance(a.S, b.S),
                   distance(a.parameters.b, b.parameters.b), distance(a.parameters.v, b.parameters.v)});
}

}  // namespace

TEST_CASE("flow: the explicit step is a step down the gradient, for what the activation has") {
  for (const HeadActivation activation : all_activations) {
    const Start start = generic_start(activation, 1);
    const SampledLoss loss = sampled_loss(activation, start.parameters, start.samples);
    FlowOptions options;
    options.step = 0.25;
    options.steps = 1;
    const std::vector<FlowPoint> points = gradient_flow(activation, start.parameters, start.samples, options);
    REQUIRE(points.size() == 2);
    CHECK(points[0].loss == loss.loss);
    CHECK(points[1].tau == 0.25);
    CHECK(distance(points[1].parameters.m, start.parameters.m - 0.25 * loss.gradient.m) < 1e-15);
    CHECK(distance(points[1].parameters.r, start.parameters.r - 0.25 * loss.gradient.r) < 1e-15);
    CHECK((points[1].parameters.b == start.parameters.b) == !has_bias(activation));
    CHECK((points[1].parameters.v == start.parameters.v) == !has_scale(activation));
  }
}

TEST_CASE("flow: three integrators agree, and the explicit step is of first order") {
  for (const HeadActivation activation : all_activations) {
    const Start start = generic_start(activation, 2);
    const auto end = [&](FlowStepper stepper, double step) {
      FlowOptions options;
      options.stepper = stepper;
      options.step = step;
      options.steps = std::lround(2 / step);
      return gradient_flow(activation, start.parameters, start.samples, options).back();
    };
    const FlowPoint exact = end(FlowStepper::dormand_prince, 0.5);
    CHECK(exact.tau == doctest::Approx(2));
    CHECK(state_distance(end(FlowStepper::runge_kutta4, 0.1), exact) < 1e-6);
    const double coarse = state_distance(end(FlowStepper::euler, 0.04), exact);
    const double fine = state_distance(end(FlowStepper::euler, 0.02), exact);
    CHECK(coarse > 1e-4);
    CHECK(coarse / fine == doctest::Approx(2).scale(0).epsilon(0.05));
    CHECK(end(FlowStepper::runge_kutta4, 0.1).loss == doctest::Approx(exact.loss).scale(0).epsilon(1e-6));
  }
}

TEST_CASE("flow: the loss falls at every step up to 0.1 and the biases of bayes keep their sum") {
  for (const HeadActivation activation : all_activations) {
    const Start start = generic_start(activation, 3);
    FlowOptions options;
    options.step = 0.1;
    options.steps = 200;
    options.record = record_every(1, 200);
    const auto points = gradient_flow(activation, start.parameters, start.samples, options);
    REQUIRE(points.size() == 201);
    for (std::size_t i = 1; i < points.size(); ++i) CHECK(points[i].loss < points[i - 1].loss);
    if (activation == HeadActivation::bayes)
      CHECK(std::abs(points.back().parameters.b.sum() - start.parameters.b.sum()) < 1e-13);
  }
}

TEST_CASE(
    "flow: S follows the same path from any root of S(0), up to the sampling noise; symmetrised r does not") {
  // A generic S(0), as in the comparison that decided between the two variants.
  Matrix<double> S(3, 3);
  S << 1.6, -0.7, 0.2, -0.7, 0.8, 0.3, 0.2, 0.3, 0.4;
  Matrix<double> m(3, 2);
  m << 0.6, 0.4, -0.5, 0.1, 0.3, -0.6;
  const Matrix<double> root = numerics::symmetric_root(S);
  numerics::RandomStream random(4);
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(Eigen::MatrixXd(random_matrix(3, 3, random)));
  const Matrix<double> rotation = qr.householderQ();
  const auto samples = SampleSet<float>::draw(Prior::flip2(2, 2), {4, 3, 40'000}, 5);
  FlowOptions options;
  options.step = 0.1;
  options.steps = 50;
  const auto end = [&](const Matrix<double>& r, FlowVariant variant) {
    options.variant = variant;
    return gradient_flow(HeadActivation::softmax, with_initial_offsets(HeadActivation::softmax, m, r),
                         samples, options)
        .back();
  };
  const FlowPoint plain = end(root, FlowVariant::frame);
  CHECK(distance(end(root * rotation, FlowVariant::frame).S, plain.S) < 0.01);
  CHECK(distance(end(root, FlowVariant::symmetric).S, plain.S) > 0.015);
}

TEST_CASE("flow: batch noise feeds S at its stated rate") {
  const Start start = generic_start(HeadActivation::softmax1, 6);
  const SampledLoss loss = sampled_loss(HeadActivation::softmax1, start.parameters, start.samples,
                                        LossDetail::gradients_and_noise);
  FlowOptions options;
  options.step = 0.5;
  options.steps = 1;
  const Matrix<double> quiet =
      gradient_flow(HeadActivation::softmax1, start.parameters, start.samples, options).back().S;
  options.batch_noise = 0.3;
  const FlowPoint noisy =
      gradient_flow(HeadActivation::softmax1, start.parameters, start.samples, options).back();
  CHECK(distance(noisy.S, quiet + 0.5 * 0.3 * loss.noise) < 1e-13);
  CHECK(distance(noisy.parameters.r, noisy.parameters.r.transpose()) < 1e-14);
}

TEST_CASE("flow: stops on the gradient and records there") {
  const Start start = generic_start(HeadActivation::softmax, 7, 50);
  FlowOptions options;
  options.step = 0.2;
  options.steps = 20'000;
  options.stop_gradient = 0.01;
  const auto points = gradient_flow(HeadActivation::softmax, start.parameters, start.samples, options);
  REQUIRE(points.size() == 2);
  CHECK(points.back().tau < 1000);
  const HeadParameters g =
      sampled_loss(HeadActivation::softmax, points.back().parameters, start.samples).gradient;
  CHECK(points.back().gradient == std::max(g.m.cwiseAbs().maxCoeff(), g.r.cwiseAbs().maxCoeff()));
  CHECK(points.back().gradient < 0.01);
  CHECK(points.front().gradient > 0.01);
}

TEST_CASE("flow: every stepper stops at the first recorded step with a small gradient") {
  const Start start = generic_start(HeadActivation::softmax, 7, 50);
  for (const FlowStepper stepper :
       {FlowStepper::euler, FlowStepper::runge_kutta4, FlowStepper::dormand_prince}) {
    FlowOptions options;
    options.step = 0.2;
    options.steps = 5'000;
    options.record = record_every(10, options.steps);
    options.stepper = stepper;
    options.stop_gradient = 0.01;
    const auto points = gradient_flow(HeadActivation::softmax, start.parameters, start.samples, options);
    CHECK(points.back().tau < 500);
    for (std::size_t i = 0; i + 1 < points.size(); ++i) CHECK(points[i].gradient >= 0.01);
    CHECK(points.back().gradient < 0.01);
  }
}

TEST_CASE("flow: records at growing steps begin at 0, end at the last and keep their ratio") {
  const std::vector<Index> record = record_growing(4, 10'000);
  CHECK(record == std::vector<Index>{0, 10, 100, 1000, 10'000});
  CHECK(record_growing(50, 3) == std::vector<Index>{0, 1, 2, 3});
  CHECK(record_growing(50, 0) == std::vector<Index>{0});
  CHECK(message_of([] { (void)record_growing(0, 10); }) == "record_growing: count must be at least 1, got 0");
}

TEST_CASE("flow: equal bits for any number of threads") {
  const auto run = [](int threads) {
    return with_threads(threads, [] {
      const auto samples = SampleSet<float>::draw(Prior::spikes(3, 9), {5, 4, 5000}, 1);
      FlowOptions options;
      options.steps = 20;
      options.step = 0.1;
      return gradient_flow(HeadActivation::bayes, noise_start(HeadActivation::bayes, 4, 3, 1, 2), samples,
                           options)
          .back();
    });
  };
  const FlowPoint one = run(1), four = run(4);
  CHECK(one.parameters.m == four.parameters.m);
  CHECK(one.parameters.r == four.parameters.r);
  CHECK(one.parameters.b == four.parameters.b);
  CHECK(one.loss == four.loss);
}

TEST_CASE("flow: rejections name the field, a diverging state its step") {
  const Start start = generic_start(HeadActivation::softmax1, 8, 20);
  const auto run = [&](const auto& set) {
    FlowOptions options;
    options.steps = 3;
    set(options);
    return message_of(
        [&] { (void)gradient_flow(HeadActivation::softmax1, start.parameters, start.samples, options); });
  };
  CHECK(run([](FlowOptions&) {}).empty());
  CHECK(run([](FlowOptions& o) { o.step = 0; }) == "gradient_flow: step must be positive and finite, got 0");
  CHECK(run([](FlowOptions& o) { o.step = -0.1; }) ==
        "gradient_flow: step must be positive and finite, got -0.1");
  CHECK(run([](FlowOptions& o) { o.steps = -1; }) == "gradient_flow: steps must be at least 0, got -1");
  CHECK(run([](FlowOptions& o) {
          o.record = {0, 2, 2};
        }) == "gradient_flow: record must increase and stay within [0, 3], got 2 at place 2");
  CHECK(run([](FlowOptions& o) { o.record = {4}; }) ==
        "gradient_flow: record must increase and stay within [0, 3], got 4 at place 0");
  CHECK(run([](FlowOptions& o) { o.batch_noise = -1; }) ==
        "gradient_flow: batch_noise must be at least 0 and finite, got -1");
  CHECK(run([](FlowOptions& o) {
          o.batch_noise = 1;
          o.stepper = FlowStepper::runge_kutta4;
        }) == "gradient_flow: batch_noise needs the euler stepper; set it to 0 for the others");
  // v grows without bound once a step overshoots the quadratic loss in v.
  CHECK(run([](FlowOptions& o) {
          o.step = 1e200;
          o.steps = 10;
        }).find("gradient_flow: ") == 0);
}

TEST_CASE("flow: steps that leave the flow are an error that says which do not") {
  const Prior prior = Prior::spikes(4, 10);
  for (const HeadActivation activation : all_activations)
    for (const FlowStepper stepper : {FlowStepper::euler, FlowStepper::runge_kutta4}) {
      const HeadParameters start = noise_start(activation, 4, 4, 1, 3);
      const auto samples = SampleSet<float>::draw(prior, {5, 4, 1000}, 3);
      FlowOptions options;
      options.step = 50;
      options.steps = 10;
      options.stepper = stepper;
      options.record = record_every(1, 10);
      const std::string message =
          message_of([&] { (void)gradient_flow(activation, start, samples, options); });
      CAPTURE(message);
      // Weights of softmax and bayes are bounded, and so are their losses: such a flow may end in its valley at once.
      if (message.empty()) continue;
      REQUIRE(message.starts_with("gradient_flow: "));
      CHECK(message.find(" at step ") != std::string::npos);
      const std::string words = "the largest that is stable there is about ";
      REQUIRE(message.find(words) != std::string::npos);
      // With half of that step the flow goes down.
      options.step = 0.5 * std::stod(message.substr(message.find(words) + words.size()));
      options.steps = 200;
      options.record = record_every(1, 200);
      const auto points = gradient_flow(activation, start, samples, options);
      for (std::size_t k = 1; k < points.size(); ++k) CHECK(points[k].loss <= points[k - 1].loss + 1e-6);
    }
  // Scales make the loss unbounded: there it must be said.
  for (const HeadActivation activation : {HeadActivation::softmaxv, HeadActivation::softmax1}) {
    FlowOptions options;
    options.step = 50;
    options.steps = 10;
    CHECK(message_of([&] {
            (void)gradient_flow(activation, noise_start(activation, 4, 4, 1, 3),
                                SampleSet<float>::draw(prior, {5, 4, 1000}, 3), options);
          }).find("largest that is stable") != std::string::npos);
  }
}
