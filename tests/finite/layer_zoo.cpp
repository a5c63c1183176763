#include "finite/layer_zoo.hpp"

#include "support/activation_layers.hpp"
#include "support/random_inputs.hpp"
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
#include "widelimit/layers/recurrent.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

void add_convolutions(std::vector<ZooLayer>& zoo) {
  for (const Padding padding : {Padding::same, Padding::valid, Padding::circular}) {
    const std::string name = std::vector{"same", "valid", "circular"}[static_cast<std::size_t>(padding)];
    zoo.push_back({"conv " + name, conv({{3}, {}, padding, 1.3, 0.2}), {5}});
    zoo.push_back({"conv strided " + name, conv({{2, 3}, {2, 1}, padding, 1.3, 0}), {4, 3}});
    zoo.push_back({"local_conv " + name, local_conv({{2}, {}, padding, 1.3, 0.2}), {4}});
  }
  zoo.push_back({"local_conv strided", local_conv({{2, 2}, {1, 2}, Padding::same, 1.3, 0}), {2, 4}});
  zoo.push_back({"conv pads",
                 conv({.filter = {3, 2}, .strides = {2, 1}, .weight_variance = 1.3, .pads = {1, 2}}),
                 {4, 3}});
  zoo.push_back({"conv dilations",
                 conv({.filter = {2, 2},
                       .strides = {1, 2},
                       .bias_variance = 0.2,
                       .pads = {1, 0, 2, 1},
                       .dilations = {2, 3}}),
                 {3, 4}});
  zoo.push_back({"local_conv pads",
                 local_conv({.filter = {2}, .strides = {2}, .bias_variance = 0.2, .pads = {2, 1}}),
                 {5}});
  zoo.push_back({"conv 3d", conv({{2, 1, 2}, {}, Padding::same, 1, 0.1}), {2, 2, 2}});
}

/// Widths of the limit that differ from those of the finite networks.
void add_standard(std::vector<ZooLayer>& zoo) {
  const StandardParametrisation wide{.input_width = 48, .width_scale = 4, .zero_biases = false},
      from_zero{.input_width = 6, .width_scale = 0.5, .zero_biases = true};
  zoo.push_back({"dense standard", dense({1.3, 0.2, wide}), {}});
  zoo.push_back({"dense standard, biases from 0", dense({1.3, 0, from_zero}), {3}});
  zoo.push_back({"conv standard", conv({{3, 2}, {1, 2}, Padding::same, 1.3, 0.2, wide}), {3, 3}});
  zoo.push_back({"local_conv standard", local_conv({{2}, {}, Padding::same, 1.3, 0.2, wide}), {4}});
  zoo.push_back(
      {"local_conv standard circular", local_conv({{2}, {}, Padding::circular, 1.3, 0, from_zero}), {4}});
  zoo.push_back({"conv_transpose standard", conv_transpose({{3}, {2}, Padding::same, 1.3, 0.2, wide}), {3}});
}

void add_position_maps(std::vector<ZooLayer>& zoo) {
  for (const Padding padding : {Padding::same, Padding::valid, Padding::circular}) {
    const std::string name = std::vector{"same", "valid", "circular"}[static_cast<std::size_t>(padding)];
    zoo.push_back({"conv_transpose " + name, conv_transpose({{2, 3}, {2, 1}, padding, 1.3, 0.2}), {2, 3}});
  }
  zoo.push_back({"slice", slice({{1, std::nullopt, 1}, {std::nullopt, std::nullopt, -2}}), {3, 3}});
  zoo.push_back({"index", index_position(0, 1), {3, 2}});
  zoo.push_back({"index of a sequence", index_position(0, -1), {3}});
  zoo.push_back({"image_resize", image_resize({{2, 4}, ResizeMethod::cubic, true}), {4, 2}});
  Matrix<double> matrix(2, 4);
  matrix << 0.5, -1, 0.3, 0, 0, 0.7, 1.1, -0.2;
  zoo.push_back({"positions_map", positions_map(matrix), {2, 2}});
}

void add_aggregations_and_recurrences(std::vector<ZooLayer>& zoo) {
  zoo.push_back({"recurrent", recurrent({1.2, 0.9, 0.3, erf()}), {4}});
  zoo.push_back({"recurrent backward", recurrent({1.2, 0.9, 0, gelu(), RecurrentDirection::backward}), {3}});
  zoo.push_back({"aggregate", aggregate(), {4}});
  zoo.push_back({"aggregate mean", aggregate({GraphNormalisation::mean, true}), {5}});
  zoo.push_back({"aggregate symmetric", aggregate({GraphNormalisation::symmetric, false}), {4}});
}

void add_poolings(std::vector<ZooLayer>& zoo) {
  zoo.push_back({"average_pool valid", average_pool({{2}, {1}, Padding::valid}), {5}});
  zoo.push_back({"average_pool same", average_pool({{2, 2}, {2, 1}, Padding::same}), {3, 2}});
  zoo.push_back({"average_pool circular", average_pool({{3, 2}, {2, 1}, Padding::circular}), {3, 2}});
  zoo.push_back({"average_pool normalised", average_pool({{3}, {2}, Padding::same, true}), {4}});
  zoo.push_back({"sum_pool", sum_pool({{2}, {}, Padding::valid}), {4}});
  zoo.push_back({"global_average_pool", global_average_pool(), {3, 2}});
  zoo.push_back({"global_sum_pool", global_sum_pool(), {3}});
  zoo.push_back({"flatten", flatten(), {2, 3}});
}

void add_activations(std::vector<ZooLayer>& zoo) {
  for (const Layers& layers : {closed_form_activations(), quadrature_activations()})
    for (const Layer& layer : layers)
      if (layer.kind() != "matern") zoo.push_back({layer.kind(), layer, {}});
}

void add_branches(std::vector<ZooLayer>& zoo) {
  const Layer relu_dense = dense({1.5, 0.1});
  zoo.push_back({"sum", sum({{0.8, {}}, {0.6, {relu(), relu_dense}}}), {}});
  zoo.push_back({"sum of fresh", sum({{0.8, {dense()}}, {-0.6, {relu(), relu_dense}}}), {3}});
  zoo.push_back({"product", product({{1.1, {}}, {0.7, {relu_dense}}, {1, {dense({1, 0.5})}}}), {}});
  zoo.push_back({"concat", concat({{0.25, {dense()}}, {0.75, {relu_dense, relu()}}}), {2}});
  zoo.push_back({"concat of positions",
                 concat_positions(1, {{dense()}, {relu(), conv({{1, 2}, {1, 2}})}, {relu_dense}}),
                 {2, 3}});
  zoo.push_back({"concat of positions with input", concat_positions(0, {{}, {relu(), relu_dense}}), {3}});
  zoo.push_back({"concat with input", concat({{0.5, {}}, {0.5, {relu(), relu_dense}}}), {}});
  zoo.push_back({"repeat", repeat(2, {relu_dense, relu()}), {2}});
}

/// Four kinds of weights with both scalings.
void add_plain_attention(std::vector<ZooLayer>& zoo, Index samples) {
  for (const AttentionScaling scaling :
       {AttentionScaling::inverse_width, AttentionScaling::inverse_sqrt_width}) {
    const std::string name = scaling == AttentionScaling::inverse_width ? "1/width " : "1/sqrt(width) ";
    AttentionOptions options;
    options.scaling = scaling;
    options.query_key_std = 0.8;
    options.output_value_variance = 1.3;
    options.bias_variance = 0.1;
    options.samples = samples;
    zoo.push_back({name + "softmax", attention(options), {4}});
    for (const Layer& weights : {identity(), relu(), layers::abs()}) {
      options.weights = AttentionWeights::elementwise(weights);
      zoo.push_back({name + weights.kind(), attention(options), {4}});
    }
  }
}

/// Masks, encodings and untied weights.
void add_encoded_attention(std::vector<ZooLayer>& zoo, Index samples) {
  AttentionOptions options;
  options.mask = AttentionMask::causal;
  options.positions = PositionalEncodings{StructuredPositions{0.9, 1.4}, 0.7, 0.3, ValueEncodings::present};
  zoo.push_back({"1/width causal, structured in values", attention(options), {4}});
  options.mask = AttentionMask::full;
  options.positions = PositionalEncodings{IdentityPositions{0.5}, 1, 1};
  zoo.push_back({"1/width identity positions", attention(options), {2, 2}});
  options.positions.reset();
  options.query_key_weights = QueryKeyWeights::untied;
  zoo.push_back({"1/width untied", attention(options), {3}});

  AttentionOptions sqrt;
  sqrt.scaling = AttentionScaling::inverse_sqrt_width;
  sqrt.weights = AttentionWeights::elementwise(relu());
  sqrt.mask = AttentionMask::causal;
  sqrt.positions = PositionalEncodings{StructuredPositions{0.9, 1.4}, 0.7, 0.3};
  zoo.push_back({"1/sqrt(width) relu causal, structured", attention(sqrt), {4}});
  sqrt.weights = AttentionWeights::elementwise(identity());
  sqrt.mask = AttentionMask::full;
  Matrix<double> r(3, 3);
  r << 1, 0.5, 0.2, 0.5, 1, 0.5, 0.2, 0.5, 1;
  sqrt.positions = PositionalEncodings{MatrixPositions{r, 0.8}, 0.6, 0.4, ValueEncodings::present};
  zoo.push_back({"1/sqrt(width) identity, matrix in values", attention(sqrt), {3}});
  sqrt.weights = AttentionWeights::softmax();
  sqrt.mask = AttentionMask::causal;
  sqrt.samples = samples;
  sqrt.positions = PositionalEncodings{IdentityPositions{0.5}, 0.5, 0.5};
  zoo.push_back({"1/sqrt(width) softmax causal, identity positions", attention(sqrt), {3}});
  sqrt.positions.reset();
  sqrt.mask = AttentionMask::full;
  sqrt.weights = AttentionWeights::elementwise(layers::erf());
  zoo.push_back({"1/sqrt(width) erf", attention(sqrt), {3}});
}

/// Rotary positions, ALiBi, windows, prefixes, masks and softmax1, in both scalings.
void add_attention_of_today(std::vector<ZooLayer>& zoo, Index samples) {
  AttentionOptions options;
  options.query_key_std = 1.2;
  options.mask = AttentionMask::causal;
  options.sequence.rotary = RotaryPositions{{0.9, 0.2}};
  zoo.push_back({"1/width rotary causal", attention(options), {4}});
  options.sequence.window = 2;
  options.sequence.alibi_slope = 0.3;
  options.weights = AttentionWeights::softmax1();
  zoo.push_back({"1/width softmax1, rotary, ALiBi, causal window", attention(options), {4}});

  AttentionOptions masked;
  masked.mask = AttentionMask::causal;
  masked.sequence.prefix = 2;
  masked.sequence.mask_matrix = Matrix<bool>::Constant(4, 4, true);
  (*masked.sequence.mask_matrix)(0, 1) = (*masked.sequence.mask_matrix)(2, 1) =
      (*masked.sequence.mask_matrix)(3, 0) = false;
  masked.weights = AttentionWeights::elementwise(relu());
  zoo.push_back({"1/width relu, prefix and mask", attention(masked), {4}});

  masked.scaling = options.scaling = AttentionScaling::inverse_sqrt_width;
  options.samples = samples;
  zoo.push_back({"1/sqrt(width) softmax1, rotary, ALiBi, causal window", attention(options), {3}});
  for (const Layer& weights : {relu(), layers::erf()}) {
    masked.weights = AttentionWeights::elementwise(weights);
    masked.sequence.rotary = RotaryPositions{{0.7, 1.3}};
    zoo.push_back({"1/sqrt(width) " + weights.kind() + ", rotary, prefix and mask", attention(masked), {4}});
  }
}

/// Biases of queries and keys, and encodings that decay with the distance.
void add_biased_attention(std::vector<ZooLayer>& zoo, Index samples) {
  AttentionOptions options;
  options.query_key_std = 1.2;
  options.query_bias_variance = options.key_bias_variance = 0.6;
  options.sequence.rotary = RotaryPositions{{0.9, 0.2}};
  zoo.push_back({"1/width rotary, biased queries and keys", attention(options), {4}});
  options.sequence.rotary.reset();
  options.weights = AttentionWeights::elementwise(relu());
  options.positions = PositionalEncodings::appended(DecayPositions{{1, 0.6, 0.4, 0.3, 0.2}, 1}, 6, 2, 0.8);
  zoo.push_back({"1/width relu, biased, decaying positions", attention(options), {2, 3}});
  options.scaling = AttentionScaling::inverse_sqrt_width;
  options.query_bias_variance = 0.3;
  zoo.push_back({"1/sqrt(width) relu, biased, decaying positions", attention(options), {3}});
  options.weights = AttentionWeights::elementwise(layers::erf());
  zoo.push_back({"1/sqrt(width) erf, biased, decaying positions", attention(options), {3}});
  options.positions.reset();
  options.weights = AttentionWeights::softmax();
  options.samples = samples;
  zoo.push_back({"1/sqrt(width) softmax, biased", attention(options), {3}});
}

}  // namespace

std::vector<ZooLayer> zoo_layers() {
  std::vector<ZooLayer> zoo{{"dense", dense({1.3, 0.2}), {}}, {"dense at positions", dense({1.3, 0}), {3}}};
  add_convolutions(zoo);
  add_standard(zoo);
  add_position_maps(zoo);
  add_aggregations_and_recurrences(zoo);
  add_poolings(zoo);
  add_activations(zoo);
  for (const NormAxes axes : {NormAxes::channels, NormAxes::channels_and_space}) {
    const std::string name = axes == NormAxes::channels ? "channels" : "channels and space";
    zoo.push_back({"layer_norm " + name, layer_norm({axes, 1e-3}), {3}});
    zoo.push_back({"rms_norm " + name, rms_norm({axes, 1e-3}), {3}});
  }
  zoo.push_back({"layer_norm axis 0", layer_norm({.epsilon = 1e-3, .spatial_axes = {0}}), {3, 2}});
  zoo.push_back({"rms_norm axes 0 and 2", rms_norm({.epsilon = 1e-3, .spatial_axes = {2, 0}}), {2, 2, 2}});
  zoo.push_back({"dropout", dropout(0.7), {2}});
  add_branches(zoo);
  return zoo;
}

std::vector<ZooLayer> zoo_attention(Index samples) {
  std::vector<ZooLayer> zoo;
  add_plain_attention(zoo, samples);
  add_encoded_attention(zoo, samples);
  add_attention_of_today(zoo, samples);
  add_biased_attention(zoo, samples);
  return zoo;
}

double relative_difference(const Matrix<double>& value, const Matrix<double>& expected) {
  return (value - expected).norm() / expected.norm();
}

std::vector<InputGraph> zoo_graphs(const ZooLayer& subject, Index first, Index count) {
  std::vector<InputGraph> graphs;
  const Index nodes = subject.shape[0];
  for (Index i = first; i < first + count; ++i) {
    const auto numbers = random_inputs(static_cast<unsigned>(i), {1, nodes, nodes});
    Matrix<double> adjacency = Eigen::Map<const Matrix<double>>(numbers.data(), nodes, nodes).cwiseAbs();
    if (subject.name == "aggregate symmetric") adjacency = (adjacency + adjacency.transpose()).eval();
    graphs.push_back(InputGraph::from_adjacency(adjacency));
  }
  return graphs;
}

Network zoo_network(const ZooLayer& subject) {
  Layers layers{dense({1.2, 0.1}), subject.layer};
  const std::string kind = subject.layer.kind();
  const bool is_readout =
      kind == "flatten" || kind.rfind("global", 0) == 0 || (kind == "index" && subject.shape.size() == 1);
  if (!subject.shape.empty() && !is_readout) layers.push_back(global_average_pool());
  layers.push_back(dense({1.1, 0.3}));
  return {subject.name, layers};
}

}  // namespace widelimit::testing
