// Readouts pulled back through attention and norms against the layers executed one by one.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "kernel/readouts/pull_back.hpp"
#include "layers/opaque_layer.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/custom.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/dropout.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/models/blocks.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::layers {
namespace {

template <typename Scalar>
xt::xarray<Scalar> images(Index count, Index side, Index channels) {
  numerics::RandomStream random(21);
  xt::xarray<Scalar> x = xt::zeros<Scalar>({count, side, side, channels});
  for (Scalar& value : x) value = static_cast<Scalar>(random.normal());
  return x;
}

Network network(const Layers& linear, const Layer& readout, bool direct) {
  Layers all = {conv({.filter = {3, 3}, .weight_variance = 2, .bias_variance = 0.1}), relu()};
  all.insert(all.end(), linear.begin(), linear.end());
  if (direct) all.push_back(opaque_layer());
  // The nonlinearity after the readout sees the variances that the functional leaves.
  all.insert(all.end(), {readout, dense({.weight_variance = 2, .bias_variance = 0.2}), relu(), dense()});
  return Network(all);
}

AttentionOptions structured(ValueEncodings values) {
  AttentionOptions options;
  options.query_key_std = 1.4;
  options.output_value_variance = 0.8;
  options.bias_variance = 0.3;
  options.positions = PositionalEncodings{StructuredPositions{0.9, 3}, 0.7, 0.5, values};
  return options;
}

AttentionOptions elementwise(const Layer& weights, AttentionMask mask) {
  AttentionOptions options;
  options.weights = AttentionWeights::elementwise(weights);
  options.query_key_std = 0.3;
  options.mask = mask;
  return options;
}

struct Case {
  std::string name;
  Layers layers;
};

std::vector<Case> linear_layers() {
  const Layer softmax = attention(structured(ValueEncodings::absent));
  const Layer with_values = attention(structured(ValueEncodings::present));
  const Layer space_norm = layer_norm({.axes = NormAxes::channels_and_space, .epsilon = 1e-3});
  const Layer causal = attention(elementwise(abs(), AttentionMask::causal));
  AttentionOptions untied;
  untied.query_key_weights = QueryKeyWeights::untied;
  Layers residual = models::residual_attention();
  residual.push_back(rms_norm());
  return {{"attention", {softmax}},
          {"attention and norm", {softmax, layer_norm()}},
          {"attention and norm over space", {with_values, space_norm}},
          {"causal, elementwise", {causal, layer_norm()}},
          {"untied", {attention(untied)}},
          {"two attentions", {with_values, layer_norm(), softmax, layer_norm()}},
          {"dense layers between and behind",
           {softmax, dense({.weight_variance = 1.3, .bias_variance = 0.4}), rms_norm(), causal,
            dense({.weight_variance = 0.6, .bias_variance = 0.2})}},
          {"residual attention", residual},
          {"branches of attention",
           {sum({{0.5, {softmax, layer_norm()}}, {0.7, {with_values}}, {0.3, {dense()}}}), rms_norm()}}};
}

template <typename Scalar>
double deviation(const Matrix<Scalar>& one, const Matrix<Scalar>& other) {
  return static_cast<double>((one - other).cwiseAbs().maxCoeff() / other.cwiseAbs().maxCoeff());
}

const std::vector<Layer> readouts{flatten(), global_average_pool(), global_sum_pool()};

/// True if lowering leaves attention's weights to a functional.
bool is_pulled_back(const Network& network) {
  const Graph graph = lower_with_readouts(network, {4, 4});
  const auto readout = std::find_if(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    return std::holds_alternative<ReadoutNode>(node.operation);
  });
  return node_shapes(graph, {4, 4})[readout->inputs[0]] == Shape{1};
}

TEST_CASE_TEMPLATE("a readout that is pulled back equals the direct execution", Scalar, float, double) {
  const auto x = images<Scalar>(4, 4, 3);
  const double tolerance = sizeof(Scalar) == 4 ? 3e-6 : 1e-14;
  for (const Case& linear : linear_layers())
    for (const Layer& readout : readouts) {
      CAPTURE(linear.name);
      const Network pulled = network(linear.layers, readout, false),
                    direct = network(linear.layers, readout, true);
      REQUIRE(is_pulled_back(pulled));
      REQUIRE(!is_pulled_back(direct));
      const auto result = gram<Scalar>(pulled, x), expected = gram<Scalar>(direct, x);
      CHECK(deviation(result.nngp, expected.nngp) < tolerance);
      CHECK(deviation(result.ntk, expected.ntk) < tolerance);
    }
}

TEST_CASE("the NNGP alone is that of both") {
  const auto x = images<double>(3, 4, 3);
  for (const Case& linear : linear_layers()) {
    CAPTURE(linear.name);
    const Network pulled = network(linear.layers, flatten(), false);
    CHECK(gram<double>(pulled, x, {.kernels = Kernels::nngp}).nngp == gram<double>(pulled, x).nngp);
  }
}

TEST_CASE("an input with itself has the variance that its state has: correlation 1 after the readout") {
  // After 20 ReLU layers a correlation that is 1 only up to rounding would have lost 8 digits of the NTK.
  const auto x = images<double>(3, 4, 3);
  for (const Layer& readout : readouts) {
    const auto at_depth = [&](Index depth) {
      Layers all = {conv({.filter = {3, 3}, .weight_variance = 2}),
                    relu(),
                    attention(structured(ValueEncodings::absent)),
                    layer_norm(),
                    readout,
                    dense()};
      for (Index i = 0; i < depth; ++i) {
        all.push_back(relu());
        all.push_back(dense({.weight_variance = 2}));
      }
      return gram<double>(Network(all), x);
    };
    // With weight variance 2 a ReLU keeps K of an input with itself, and T gains K a layer.
    const auto shallow = at_depth(0), deep = at_depth(20);
    for (Index i = 0; i < 3; ++i) {
      CHECK(deep.nngp(i, i) == doctest::Approx(shallow.nngp(i, i)).epsilon(1e-14).scale(0));
      CHECK(deep.ntk(i, i) ==
            doctest::Approx(shallow.ntk(i, i) + 20 * shallow.nngp(i, i)).epsilon(1e-13).scale(0));
    }
  }
}

/// Sequences of 3, 5 and 2 tokens.
std::vector<xt::xarray<double>> ragged() {
  numerics::RandomStream random(22);
  std::vector<xt::xarray<double>> batch;
  for (const Index length : {3, 5, 2}) {
    xt::xarray<double> x = xt::zeros<double>({length, Index{4}});
    for (double& value : x) value = random.normal();
    batch.push_back(x);
  }
  return batch;
}

TEST_CASE("sequences of different length: global pooling is pulled back, flatten refuses") {
  const auto batch = ragged();
  const Layers linear = {attention(structured(ValueEncodings::present)), layer_norm(),
                         attention(structured(ValueEncodings::absent)), rms_norm()};
  const auto behind = [&](const Layers& end) {
    Layers all = {dense(), relu()};
    all.insert(all.end(), linear.begin(), linear.end());
    all.insert(all.end(), end.begin(), end.end());
    return Network(all);
  };
  for (const Layer& readout : {global_average_pool(), global_sum_pool()}) {
    const auto pulled = gram<double>(behind({readout}), batch),
               direct = gram<double>(behind({opaque_layer(), readout}), batch);
    CHECK(deviation(pulled.nngp, direct.nngp) < 1e-14);
    CHECK(deviation(pulled.ntk, direct.ntk) < 1e-14);
  }
  CHECK_THROWS_WITH_AS(static_cast<void>(gram<double>(behind({flatten()}), batch)),
                       doctest::Contains("layers[6] (flatten): expected inputs of equal size, got"),
                       NetworkError);
}

/// True if no covariance of the network has positions.
bool is_carried_by_features(const Network& network, const Shape& input) {
  const std::vector<Shape> shapes = node_shapes(lower_with_readouts(network, input), input);
  return std::all_of(shapes.begin(), shapes.end(), [](const Shape& shape) { return shape.empty(); });
}

TEST_CASE_TEMPLATE("linear from the inputs to the pooling: features take the covariance's place", Scalar,
                   float, double) {
  const auto x = images<Scalar>(4, 4, 3);
  const double tolerance = sizeof(Scalar) == 4 ? 3e-6 : 1e-14;
  std::vector<Case> cases = linear_layers();
  cases.push_back({"dense", {dense({.weight_variance = 1.3, .bias_variance = 0.4})}});
  cases.push_back(
      {"pooled inputs", {average_pool({.window = {2, 2}}), attention(structured(ValueEncodings::absent))}});
  for (const Case& linear : cases)
    for (const Layer& readout : {global_average_pool(), global_sum_pool()}) {
      CAPTURE(linear.name);
      const auto behind = [&](const Layers& before_readout) {
        Layers all = linear.layers;
        all.insert(all.end(), before_readout.begin(), before_readout.end());
        all.insert(all.end(), {readout, dense({.weight_variance = 2, .bias_variance = 0.2})});
        return Network(all);
      };
      const Network features = behind({}), direct = behind({opaque_layer()});
      REQUIRE(is_carried_by_features(features, {4, 4}));
      REQUIRE(!is_carried_by_features(direct, {4, 4}));
      const auto result = gram<Scalar>(features, x), expected = gram<Scalar>(direct, x);
      CHECK(deviation(result.nngp, expected.nngp) < tolerance);
      CHECK(deviation(result.ntk, expected.ntk) < tolerance);
      CHECK(result.ntk.diagonal() == gram_diagonal<Scalar>(features, x).ntk.col(0));
    }
}

TEST_CASE("features of sequences of different length, beside other branches of them") {
  const auto batch = ragged();
  const Layer structure = attention(structured(ValueEncodings::present));
  const auto with = [&](const Layers& opaque) {
    Layers branch = {structure, layer_norm()};
    branch.insert(branch.end(), opaque.begin(), opaque.end());
    branch.push_back(global_average_pool());
    branch.push_back(dense());
    return Network({sum({{0.7, branch}, {0.4, {global_average_pool(), dense()}}}), relu(), dense()});
  };
  const Network features = with({}), direct = with({opaque_layer()});
  REQUIRE(is_carried_by_features(features, {5}));
  const auto result = gram<double>(features, batch), expected = gram<double>(direct, batch);
  CHECK(deviation(result.nngp, expected.nngp) < 1e-14);
  CHECK(deviation(result.ntk, expected.ntk) < 1e-14);
}

TEST_CASE("features stay out of networks that are not linear up to global pooling") {
  const auto carried = [](const Layers& layers) { return is_carried_by_features(Network(layers), {4, 4}); };
  CHECK(carried({attention(), global_average_pool()}));
  CHECK(!carried({attention(), flatten()}));
  CHECK(!carried({dense(), relu(), global_average_pool()}));
  CHECK(!carried({conv({.filter = {3, 3}}), global_average_pool()}));
  CHECK(!carried({dropout(0.5), global_average_pool()}));
}

TEST_CASE("what is not linear in the covariance is not pulled back") {
  const Layer softmax = attention();
  AttentionOptions identity_weights;
  identity_weights.scaling = AttentionScaling::inverse_sqrt_width;
  identity_weights.weights = AttentionWeights::elementwise(identity());
  const auto pulled = [](const Layers& layers) {
    return is_pulled_back(network(layers, global_average_pool(), false));
  };
  CHECK(!pulled({}));
  CHECK(!pulled({rms_norm(), dense()}));
  CHECK(!pulled({attention(identity_weights)}));
  CHECK(!pulled({product({{1, {softmax}}, {1, {dense()}}})}));
  CHECK(!pulled({softmax, relu()}));
  CHECK(!pulled({softmax, dropout(0.5)}));
  // A branch with a nonlinearity of its own has another input before its linear layers.
  CHECK(!pulled({sum({{1, {softmax}}, {1, {dense(), relu(), dense()}}})}));
}

}  // namespace
}  // namespace widelimit::layers
