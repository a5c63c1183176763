#include "widelimit/kernel/explain.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>

#include "numerics/standard_normal.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/layer_norm.hpp"
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
  CHECK(diagonal.pair.seconds == 0);
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
  CHECK(line_of(explain<float>(deep, {16, 16}, 4, {}, 0), "flatten").operation ==
        "readout, pulled back through layers[2] (attention); by leading outputs of inputs that leave out "
        "1e-07 of either "
        "kernel (1e-13 in double) with 32 or fewer, else one product of matrices");
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
  CHECK(plan.pair.seconds > 0);
  CHECK(plan.pair.seconds < 1);  // microseconds, on a machine that is not busy otherwise
  CHECK(plan.seconds(3) ==
        doctest::Approx(plan.start.seconds + 3 * plan.input.seconds + 6 * plan.pair.seconds));
  CHECK(to_string(plan).find("measured") != std::string::npos);
  CHECK(to_string(plan).find("time") == std::string::npos);
}

TEST_CASE("explain: making the states of inputs is no part of a pair's time") {
  // Attention before flatten keeps weights and leading outputs of every image, which takes several times a pair.
  AttentionOptions options;
  options.query_key_std = 2;
  const Network network("attention",
                        {convolution(), relu(), attention(options), layer_norm(), flatten(), dense()});
  const Plan plan = explain<float>(network, {16, 16}, 3, {.threads = 1}, 0.2);
  CHECK(plan.pair.processor_seconds > 0);
  CHECK(plan.input.processor_seconds > plan.pair.processor_seconds);
  CHECK(plan.measured_on == "smooth random images");
  CHECK(plan.of_gram(10).seconds ==
        doctest::Approx(plan.start.seconds + 10 * plan.input.seconds + 55 * plan.pair.seconds));
  CHECK(plan.of_gram(10, 3).seconds ==
        doctest::Approx(plan.start.seconds + 13 * plan.input.seconds + 30 * plan.pair.seconds));
  // States that do not fit into memory are made again.
  const Plan small = explain<float>(network, {16, 16}, 3, {.threads = 1, .state_memory_bytes = 1}, 0.01);
  CHECK(small.of_gram(10).seconds > small.start.seconds + 20 * small.input.seconds);
}

TEST_CASE("explain: inputs that are at hand are run, smooth ones cost attention less than noise") {
  AttentionOptions options;
  options.query_key_std = 2;
  const Network network("attention",
                        {convolution(), relu(), attention(options), layer_norm(), flatten(), dense()});
  const xt::xarray<float> smooth = xt::ones<float>({4, 20, 20, 3}),
                          noise = numerics::standard_normal<float>({4, 20, 20, 3}, numerics::RandomStream(1));
  const Plan easy = explain<float>(network, smooth, {.threads = 1}, 0.2),
             hard = explain<float>(network, noise, {.threads = 1}, 0.2);
  CHECK(easy.measured_on == "inputs of the 4 given");
  CHECK(easy.pair.processor_seconds < hard.pair.processor_seconds);
}

TEST_CASE("explain: inputs of different shape") {
  const Network network("sequences", {conv({.filter = {3}}), relu(), global_average_pool(), dense()});
  const xt::xarray<float> padded = numerics::standard_normal<float>({5, 30, 4}, numerics::RandomStream(1));
  const std::vector<Index> lengths{3, 30, 7, 7, 12};
  const Inputs<float> x(padded, lengths);
  const Plan plan = explain<float>(network, x, {}, 0.01);
  CHECK(line_of(plan, "relu").entries == 900);
  CHECK(plan.is_measured());
  CHECK(plan.state_bytes < explain<float>(network, {30}, 4, {}, 0).state_bytes);
  CHECK_THROWS_AS(static_cast<void>(explain<float>(network, x, {}, 0, StepTimes::none, -1)), ArgumentError);
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

TEST_CASE("explain: inputs of any size are answered at once") {
  const Network pooled("gap", {convolution(), relu(), global_average_pool(), dense()});
  const Network flat("flatten", {convolution(), relu(), flatten(), dense()});
  const auto start = std::chrono::steady_clock::now();
  const Plan huge = explain<float>(pooled, {1'000'000, 1'000'000}, 3);
  CHECK(
      huge.remark ==
      "too large to be computed: layers[2] (global_average_pool): expected at most 4194304 offsets between "
      "the positions of two inputs, and 1048576 along an axis, got 4e+12 and 2e+06; take smaller inputs, or "
      "pool or stride earlier");
  CHECK(line_of(huge, "relu").entries == 1e24);
  CHECK(to_string(huge).ends_with(huge.remark + "\n"));
  // Without pooling only one offset is wanted: the plan is exact, and nothing is measured.
  const Plan diagonal = explain<double>(flat, {1'000'000, 1'000'000}, 3);
  CHECK(line_of(diagonal, "relu").entries == 1e12);
  CHECK(diagonal.remark.starts_with("not measured: a pair takes about "));
  CHECK(diagonal.pair.seconds == 0);
  // The largest images that are planned, and the longest sequences.
  CHECK(explain<float>(pooled, {1024, 1024}, 3).remark.starts_with("not measured: "));
  const Network sequence("sequence", {conv({.filter = {3}}), relu(), global_average_pool(), dense()});
  CHECK(explain<float>(sequence, {500'000}, 3).remark.starts_with("not measured: "));
  CHECK(explain<float>(sequence, {600'000}, 3).remark.starts_with("too large"));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  CHECK(seconds.count() < 5);
  CHECK_THROWS_WITH_AS(
      static_cast<void>(explain<float>(flat, {1'000'000'000, 1'000'000'000}, 3)),
      "the input (1000000000x1000000000): expected at most 2.81e+14 numbers an input, got 3e+18",
      NetworkError);
  CHECK_THROWS_AS(static_cast<void>(explain<float>(Network("d", {dense()}), {}, Index{1} << 60)),
                  NetworkError);
}

TEST_CASE("explain: windows far wider than the input are refused, by layer and sizes") {
  const Layer wide = conv({.filter = {4'000'000'000, 4'000'000'000}});
  CHECK_THROWS_WITH_AS(
      static_cast<void>(explain<float>(Network("n", {wide, flatten()}), {3, 3}, 1)),
      "layers[0] (conv): expected a window of at most 65536 positions for inputs of 3x3, got "
      "4000000000x4000000000 = 1.6e+19",
      NetworkError);
  CHECK_NOTHROW(static_cast<void>(
      explain<float>(Network("n", {conv({.filter = {600, 600}}), flatten()}), {300, 300}, 1, {}, 0)));
}

}  // namespace
}  // namespace widelimit::testing
