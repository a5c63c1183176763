// A stop that is asked for reaches the inside of layers and tiles.
#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "support/random_inputs.hpp"
#include "support/seconds_to_stop.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/custom.hpp"
#include "widelimit/layers/pooling.hpp"

using namespace widelimit;
using namespace widelimit::layers;
using widelimit::testing::random_inputs;

namespace {

using Clock = std::chrono::steady_clock;

/// Seconds that a Gram matrix, which takes minutes, goes on after it was asked to stop.
double seconds_to_stop(const Network& network, const std::vector<Index>& shape) {
  const auto x = random_inputs(5, shape);
  const auto body = [&](std::stop_token stop) {
    GramOptions options;
    options.threads = 2;
    options.stop = std::move(stop);
    return gram<double>(network, x, options);
  };
  return widelimit::testing::seconds_to_stop(body, "gram: stopped on request after ");
}

Network attention_network(const AttentionOptions& options) {
  return {"attention", {attention(options), flatten()}};
}

enum class Slow { prepare, apply };

/// A user's stage that goes on until it is asked to stop, or for a few seconds.
class SlowStage final : public PairStageOf<SlowStage> {
 public:
  explicit SlowStage(Slow slow) : slow_{slow} {}

  StageRules rules() const override { return {.leaves = StageRules::Leaves::gaussian, .own_weights = true}; }
  Shape output_shape(const Shape& input) const override { return input; }

  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>& input, Scalar*) const {
    if (slow_ == Slow::prepare) wait(input.stop);
  }
  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    if (slow_ == Slow::apply) wait(pair.stop);
    result.nngp = pair.nngp;
    if (pair.ntk.size() > 0) result.ntk = pair.ntk;
  }

 private:
  static void wait(const StopRequest& stop) {
    for (const auto end = Clock::now() + std::chrono::seconds(10); Clock::now() < end;) {
      stop.check();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  Slow slow_;
};

}  // namespace

TEST_CASE("stop: from within attention with 1/sqrt(width) scaling") {
  const auto scaled = [](AttentionWeights weights) {
    AttentionOptions options;
    options.scaling = AttentionScaling::inverse_sqrt_width;
    options.weights = std::move(weights);
    return options;
  };
  AttentionOptions sampled = scaled(AttentionWeights::softmax());
  sampled.samples = 10'000'000;
  CHECK(seconds_to_stop(attention_network(sampled), {2, 64, 3}) < 1);
  CHECK(seconds_to_stop(attention_network(scaled(AttentionWeights::elementwise(gelu()))), {2, 500, 3}) < 1);
  CHECK(seconds_to_stop(attention_network(scaled(AttentionWeights::elementwise(relu()))), {60, 1000, 3}) < 1);
}

TEST_CASE("stop: a user's stages are told, while states are recorded and in pairs") {
  for (const Slow slow : {Slow::prepare, Slow::apply}) {
    const Layer layer = pair_layer("slow", std::make_shared<SlowStage>(slow));
    CHECK(seconds_to_stop({"positions", {layer, flatten()}}, {3, 4, 2}) < 1);
  }
}

TEST_CASE("stop: from within tiles of large images") {
  const Network network{
      "images", {conv({.filter = {3, 3}}), relu(), conv({.filter = {3, 3}}), relu(), global_average_pool()}};
  CHECK(seconds_to_stop(network, {20, 128, 128, 1}) < 1);
}
