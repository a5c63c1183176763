#include "widelimit/kernel/explain.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

Layer convolution() { return conv({.filter = {3, 3}, .strides = {}, .padding = Padding::same}); }

const PlanLine& line_of(const Plan& plan, const std::string& layer) {
  const auto line = std::find_if(plan.lines.begin(), plan.lines.end(),
                                 [&](const PlanLine& l) { return l.layer.find(layer) != std::string::npos; });
  REQUIRE(line != plan.lines.end());
  return *line;
}

TEST_CASE("explain: global pooling demands every offset, flatten the diagonal") {
  const Network pooled("gap", {convolution(), relu(), global_average_pool(), dense()});
  const Plan all = explain<float>(pooled, {4, 5}, 3, {}, 0);
  const PlanLine& map = line_of(all, "relu");
  CHECK(map.demand == "all 63 offsets");
  CHECK(map.entries == 400);
  CHECK(map.flops == 400 * 25);
  CHECK(map.storage == "fused");
  CHECK(line_of(all, "input").flops == 2 * 3 * 400);
  CHECK(line_of(all, "conv").flops == 400 * 2 * (9 + 2));
  CHECK(line_of(all, "dense").storage == "number");

  const Network flat("flatten", {convolution(), relu(), flatten(), dense()});
  const Plan diagonal = explain<float>(flat, {4, 5}, 3, {}, 0);
  CHECK(line_of(diagonal, "relu").demand == "offset 0");
  CHECK(line_of(diagonal, "relu").entries == 20);
  CHECK(diagonal.flops < all.flops / 10);
  CHECK(diagonal.seconds_per_pair == 0);
}

TEST_CASE("explain: one kernel costs less than two, double more than float") {
  const Network network("gap", {convolution(), relu(), global_average_pool(), dense()});
  GramOptions nngp;
  nngp.kernels = Kernels::nngp;
  const Plan both = explain<float>(network, {4, 4}, 3, {}, 0);
  CHECK(explain<float>(network, {4, 4}, 3, nngp, 0).flops < both.flops);
  CHECK(explain<double>(network, {4, 4}, 3, {}, 0).state_bytes > 1.5 * both.state_bytes);
  CHECK(both.workspace_bytes > 0);
}

TEST_CASE("explain: says what was pulled back, and what became a feature prefix") {
  const Network linear("prefix", {attention({}), global_average_pool(), dense()});
  const PlanLine prefix = line_of(explain<float>(linear, {6}, 4, {}, 0), "global_average_pool");
  CHECK(prefix.operation.find("feature prefix, pulled back through layers[0] (attention)") == 0);
  CHECK(prefix.storage == "number");

  const Network deep("pulled", {convolution(), relu(), attention({}), flatten(), dense()});
  const PlanLine pulled = line_of(explain<float>(deep, {3, 3}, 4, {}, 0), "flatten");
  CHECK(pulled.operation == "readout, pulled back through layers[2] (attention)");
  // One product of 9 x 9 matrices, and both kernels contracted with it.
  CHECK(pulled.flops == 2 * 9 * 9 * 9 + 2 * 2 * 81);
}

TEST_CASE("explain: sampled layers run in replicates, elementwise attention costs what is wanted") {
  AttentionOptions options;
  options.scaling = AttentionScaling::inverse_sqrt_width;
  options.samples = 8;
  const Network sampled("sampled", {convolution(), relu(), attention(options), flatten(), dense()});
  CHECK(explain<float>(sampled, {2, 2}, 3, {}, 0).replicates == 8);
  options.weights = AttentionWeights::elementwise(layers::erf());
  const auto flops = [&](const Layer& readout) {
    const Network network("elementwise", {convolution(), relu(), attention(options), readout, dense()});
    return line_of(explain<float>(network, {2, 3}, 3, {}, 0), "attention").flops;
  };
  CHECK(flops(global_average_pool()) == doctest::Approx(6 * flops(flatten())));
}

TEST_CASE("explain: the measured time is a time, and grows with the pairs") {
  const Network network("fcn", {dense(), relu(), dense()});
  const Plan plan = explain<double>(network, {}, 8, {}, 0.01);
  CHECK(plan.seconds_per_pair > 0);
  CHECK(plan.seconds_per_pair < 1);  // microseconds, on a machine that is not busy otherwise
  CHECK(plan.seconds(3) == doctest::Approx(6 * plan.seconds_per_pair));
  CHECK(to_string(plan).find("measured") != std::string::npos);
  CHECK(to_string(plan).find("time") == std::string::npos);
}

TEST_CASE("explain: the times of the lines are those of the pairs, summed over threads") {
  const Network network({conv({.filter = {3, 3}}), relu(), global_average_pool(), dense(), relu()});
  const Plan plan = explain<float>(network, {6, 6}, 3, {.threads = 1}, 0.05, StepTimes::measured);
  double seconds = 0;
  for (const PlanLine& line : plan.lines) {
    CAPTURE(line.layer);
    CHECK(line.seconds > 0);
    seconds += line.seconds;
  }
  CHECK(seconds < 1);
  CHECK(to_string(plan).find("time") != std::string::npos);
}

TEST_CASE("explain: what gram() rejects is rejected") {
  const Network network("gap", {convolution(), global_average_pool(), dense()});
  CHECK_THROWS_AS(static_cast<void>(explain<float>(network, {}, 3)), NetworkError);
  CHECK_THROWS_WITH_AS(static_cast<void>(explain<float>(network, {4, 4}, 0)),
                       "explain: channels must be at least 1, got 0", ArgumentError);
}

}  // namespace
}  // namespace widelimit::testing
