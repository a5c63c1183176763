#include "widelimit/kernel/laws.hpp"

#include <doctest/doctest.h>

#include "support/activation_layers.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/dropout.hpp"
#include "widelimit/layers/exp_normalized.hpp"
#include "widelimit/layers/graphs.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/layers/positions.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

void check_passes(const Layer& layer, const LawOptions& options = {}) {
  const LawReport report = check_laws(layer, options);
  INFO(to_string(report));
  CHECK(report.passed());
  CHECK(report.rows.size() == 12);
}

/// For layers that treat every position alike, whatever the number of axes.
LawOptions position_by_position() {
  LawOptions options;
  options.shapes = {{}, {2}};
  return options;
}

TEST_CASE("linear layers obey the laws") {
  check_passes(dense({1.3, 0.2}));
  for (const Padding padding : {Padding::same, Padding::valid, Padding::circular}) {
    check_passes(conv(
        {.filter = {3}, .strides = {}, .padding = padding, .weight_variance = 1.2, .bias_variance = 0.1}));
    check_passes(conv({.filter = {2, 2},
                       .strides = {2, 1},
                       .padding = padding,
                       .weight_variance = 1.2,
                       .bias_variance = 0}));
    check_passes(conv({.filter = {1, 3, 2},
                       .strides = {},
                       .padding = padding,
                       .weight_variance = 1.2,
                       .bias_variance = 0.1}));
    check_passes(local_conv(
        {.filter = {2, 1}, .strides = {}, .padding = padding, .weight_variance = 1.2, .bias_variance = 0.1}));
  }
  for (const Padding padding : {Padding::same, Padding::valid, Padding::circular})
    check_passes(conv_transpose({{3}, {2}, padding, 1.2, 0.1}));
  check_passes(sum_pool({.window = {3}, .strides = {2}, .padding = Padding::circular}));
  check_passes(
      average_pool({.window = {2, 3}, .strides = {1, 2}, .padding = Padding::same, .normalize_edges = true}));
  const StandardParametrisation standard{.input_width = 40, .width_scale = 3, .zero_biases = false};
  check_passes(dense({1.3, 0.2, standard}));
  for (const Padding padding : {Padding::same, Padding::circular}) {
    check_passes(conv({{2, 3}, {2, 1}, padding, 1.2, 0.1, standard}));
    check_passes(local_conv({{3}, {}, padding, 1.2, 0.1, standard}));
  }
  check_passes(slice({{-2, std::nullopt, 1}}));
  check_passes(slice({{1, 4, 2}}));
  check_passes(slice({{1, std::nullopt, 1}, {0, 2, 1}}));
  check_passes(slice({{std::nullopt, std::nullopt, 2}, {1, std::nullopt, 2}}));
  check_passes(index_position(0, 1));
  check_passes(image_resize({.size = {3, 5}}));
  for (const Padding padding : {Padding::same, Padding::valid}) {
    check_passes(average_pool({.window = {2, 2}, .strides = {1, 1}, .padding = padding}));
    check_passes(sum_pool({.window = {3}, .strides = {2}, .padding = padding}));
  }
  check_passes(flatten());
  check_passes(global_average_pool());
  check_passes(global_sum_pool());
}

TEST_CASE("aggregation along graphs obeys the laws") {
  check_passes(aggregate());
  check_passes(aggregate({.normalise = GraphNormalisation::mean, .self_loops = true}));
  check_passes(aggregate({.normalise = GraphNormalisation::symmetric}));
}

TEST_CASE("activations in closed form obey the laws") {
  Layers layers = closed_form_activations();
  layers.push_back(hermite(3));
  layers.push_back(monomial(3));
  for (const Layer& layer : layers) check_passes(layer, position_by_position());
}

TEST_CASE("activations by quadrature obey the laws") {
  LawOptions options = position_by_position();
  options.inputs = 2;
  options.double_tolerance = 1e-8;
  for (const Layer& layer : quadrature_activations()) check_passes(layer, options);
}

TEST_CASE("norms and dropout obey the laws") {
  for (const NormAxes axes : {NormAxes::channels, NormAxes::channels_and_space}) {
    check_passes(layer_norm({axes, 1e-3}));
    check_passes(rms_norm({axes, 1e-3}));
  }
  LawOptions shapes;
  shapes.shapes = {{3, 2}, {2, 3, 2}};
  check_passes(layer_norm({.epsilon = 1e-3, .spatial_axes = {1}}), shapes);
  check_passes(rms_norm({.epsilon = 1e-3, .spatial_axes = {0}}));
  check_passes(dropout(0.7));
}

TEST_CASE("attention of 1/width obeys the laws") {
  check_passes(attention({}));
  for (const Layer& weights : {identity(), relu(), layers::abs()}) {
    AttentionOptions options;
    options.weights = AttentionWeights::elementwise(weights);
    options.bias_variance = 0.1;
    check_passes(attention(options));
  }
  AttentionOptions options;
  options.mask = AttentionMask::causal;
  options.positions = PositionalEncodings{StructuredPositions{0.9, 1.4}, 0.7, 0.3, ValueEncodings::present};
  check_passes(attention(options));
}

TEST_CASE("attention with rotary positions, ALiBi and masks obeys the laws") {
  LawOptions sequences;
  sequences.shapes = {{3}};
  AttentionOptions options;
  options.sequence.rotary = RotaryPositions::with_base(100, 3);
  options.sequence.alibi_slope = 0.4;
  options.sequence.window = 2;
  check_passes(attention(options), sequences);
  options.weights = AttentionWeights::softmax1();
  options.mask = AttentionMask::causal;
  options.sequence.prefix = 2;
  check_passes(attention(options), sequences);
  options.sequence.alibi_slope = 0;
  options.scaling = AttentionScaling::inverse_sqrt_width;
  for (const Layer& weights : {identity(), relu(), layers::erf()}) {
    options.weights = AttentionWeights::elementwise(weights);
    check_passes(attention(options), sequences);
  }
}

TEST_CASE("attention with biases and decaying positions obeys the laws") {
  AttentionOptions options;
  options.query_bias_variance = options.key_bias_variance = 0.4;
  options.positions = PositionalEncodings::added(
      DecayPositions::of([](double distance) { return 1 / (1 + distance); }, 20), 0.7);
  for (const Layer& weights : {identity(), relu(), layers::erf()}) {
    options.weights = AttentionWeights::elementwise(weights);
    options.scaling = AttentionScaling::inverse_width;
    options.query_bias_variance = 0.4;
    check_passes(attention(options));
    options.scaling = AttentionScaling::inverse_sqrt_width;
    options.query_bias_variance = 0.2;
    check_passes(attention(options));
  }
}

TEST_CASE("branches obey the laws") {
  check_passes(concat_positions(0, {{}, {dense({1.5, 0.1})}, {slice({{1, {}, 1}}), dense()}}), [] {
    LawOptions options;
    options.shapes = {{3}};
    return options;
  }());
  check_passes(sum({{0.8, {}}, {0.6, {dense({1.5, 0.1})}}}));
  check_passes(product({{1, {}}, {0.6, {dense({1.5, 0.1})}}}));
  check_passes(concat({{0.25, {dense()}}, {0.75, {dense({2, 0.1}), relu()}}}));
  check_passes(repeat(2, {dense({1.5, 0.1}), relu()}));
}

TEST_CASE("a whole network is checked with the shapes that it takes") {
  const Network network("small", {conv({.filter = {2, 2},
                                        .strides = {},
                                        .padding = Padding::same,
                                        .weight_variance = 1.5,
                                        .bias_variance = 0.1}),
                                  relu(), global_average_pool(), dense(), relu(), dense()});
  const LawReport report = check_laws(network);
  INFO(to_string(report));
  CHECK(report.passed());
  CHECK(report.rows[0].detail.find("2 networks") == 0);
}

}  // namespace
}  // namespace widelimit::testing
