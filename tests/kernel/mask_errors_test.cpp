// Masks that do not fit inputs or layers, and masks that leave nothing.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/error_message.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/finite/finite_network.hpp"
#include "widelimit/kernel/flip_average.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/gram_tiles.hpp"
#include "widelimit/kernel/position_covariances.hpp"
#include "widelimit/kernel/prepared_inputs.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/exp_normalized.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/layers/positions.hpp"
#include "widelimit/models/cross_attention.hpp"

namespace widelimit::testing {
namespace {

using namespace layers;

TEST_CASE("masks that do not fit") {
  const auto x = random_inputs(1, {2, 3, 2});
  const Inputs<double> vectors(random_inputs(1, {2, 3}));
  const xt::xarray<bool> good = xt::ones<bool>({2, 3}), bad = xt::ones<bool>({2, 4});
  xt::xarray<bool> empty = good;
  empty(1, 0) = empty(1, 1) = empty(1, 2) = false;
  CHECK(error_message<Error>([&] { return Inputs<double>(x, bad); }) ==
        "inputs: expected a mask [2, 3], one value a position, got [2, 4]");
  CHECK(error_message<Error>([&] { return Inputs<double>(x, empty); }) ==
        "inputs: expected a mask that leaves a position of every input, got none of input 1");
  CHECK(error_message<Error>([&] { return Inputs<double>(vectors, bad); }) ==
        "inputs: masks belong to a batch [n, spatial..., C], got one of vectors");
  const Inputs<double> masked(x, good);
  CHECK(error_message<Error>([&] { return Inputs<double>(masked, good); }) ==
        "inputs: masks belong to a batch [n, spatial..., C], got one that has a mask");
  const std::vector<Index> lengths{3, 2};
  CHECK(error_message<Error>([&] { return Inputs<double>(masked, lengths); }) ==
        "inputs: expected lengths before the mask, got a batch with a mask");
  CHECK(error_message<Error>([&] { return Inputs<double>(Inputs<double>(x, lengths), good); }) == "no error");
  const Inputs<double> ragged(x, lengths);
  CHECK(error_message<Error>([&] {
          return Inputs<double>(ragged, xt::xarray<bool>(xt::ones<bool>({2, 2})));
        }) == "inputs: expected a mask [2, 3] or a larger one, one value a position, got [2, 2]");
  // After the two positions of input 1 nothing counts.
  xt::xarray<bool> behind = good;
  behind(1, 0) = behind(1, 1) = false;
  CHECK(error_message<Error>([&] { return Inputs<double>(ragged, behind); }) ==
        "inputs: expected a mask that leaves a position of every input, got none of input 1");
  std::vector<xt::xarray<bool>> list{xt::ones<bool>({3}), xt::ones<bool>({3})};
  CHECK(error_message<Error>([&] { return Inputs<double>(ragged, list); }) ==
        "inputs: expected a mask [2] for input 1, one value a position, got [3]");
  list.pop_back();
  CHECK(error_message<Error>([&] { return Inputs<double>(ragged, list); }) ==
        "inputs: expected 2 masks, one an input, got 1");

  const auto gram_error = [&](Layers layers, const xt::xarray<bool>& mask) {
    return error_message<Error>([&] { return gram(Network(std::move(layers)), Inputs<double>(x, mask)); });
  };
  // Every position behind reads a masked one.
  xt::xarray<bool> middle = good;
  middle(1, 1) = false;
  CHECK(gram_error({conv_transpose({{3}}), flatten()}, middle) ==
        "layers[0] (conv_transpose): expected a mask that leaves a position after this layer, got none of 3 "
        "(input 1 of x)");
  AttentionOptions encoded;
  encoded.scaling = AttentionScaling::inverse_sqrt_width;
  encoded.weights = AttentionWeights::elementwise(relu());
  encoded.positions = PositionalEncodings{IdentityPositions{}, 1, 1, ValueEncodings::present};
  CHECK(gram_error({attention(encoded), flatten()}, good) ==
        "layers[0] (attention): encodings in the values do not know masks with inverse_sqrt_width; leave "
        "in_values out");
  const finite::FiniteNetwork<double> network(Network({dense(), flatten(), dense()}), {{3}, 2}, {.hidden = 4},
                                              {}, 1, 1);
  CHECK(error_message<Error>([&] { return network.forward(masked); }) ==
        "FiniteNetwork::forward: finite networks do not know masks; leave masked positions out");
}

/// Three sequences; of the last one only the first position counts.
struct AlmostNothing {
  xt::xarray<double> x = random_inputs(1, {3, 6, 2});
  xt::xarray<bool> mask = xt::ones<bool>({3, 6});

  AlmostNothing() {
    for (std::size_t a = 1; a < 6; ++a) mask(2, a) = false;
  }
  [[nodiscard]] Inputs<double> inputs() const { return {Inputs<double>(x), mask}; }
};

TEST_CASE("a layer that leaves no position of an input is an error, whatever stands after it") {
  const Inputs<double> x = AlmostNothing().inputs();
  const Layer rest_of_it = slice({{2, std::nullopt, 1}});
  // Each leaves five positions or fewer, of which the first is not one.
  const std::vector<Layer> emptying{rest_of_it,
                                    slice({{std::nullopt, 0, -1}}),
                                    conv({{3}, {}, Padding::valid, 1, 0.2}),
                                    conv({{3}, {3}, Padding::same}),
                                    conv({{3}, {3}, Padding::circular}),
                                    local_conv({{3}, {}, Padding::valid}),
                                    average_pool({{3}, {1}}),
                                    average_pool({{3}, {3}, Padding::same, true}),
                                    sum_pool({{3}, {3}, Padding::circular})};
  const std::vector<Layers> tails{
      {flatten()},
      {global_sum_pool()},
      {global_average_pool()},
      {dense(), relu(), flatten()},
      {dense(), layer_norm(), layers::cos(), global_sum_pool()},
      {dense(), layer_norm({NormAxes::channels_and_space}), erf(), global_sum_pool()},
      {dense(), layer_norm({NormAxes::channels, 1e-3, {0}}), flatten()},
      {dense(), exp_normalized(), global_sum_pool()},
      {attention(), global_sum_pool()}};
  for (const Layer& layer : emptying)
    for (const Layers& tail : tails) {
      Layers layers{layer};
      layers.insert(layers.end(), tail.begin(), tail.end());
      const std::string error = error_message<NetworkError>([&] { return gram(Network(layers), x); });
      CAPTURE(error);
      CHECK(error.find("layers[0] (" + layer.kind() +
                       "): expected a mask that leaves a position after this layer, got none of ") == 0);
      CHECK(error.find("(input 2 of x)") != std::string::npos);
    }
  // Its norm would make a 0 of the covariance, and the cosine a 1.
  CHECK(error_message<NetworkError>([&] {
          return gram(Network({index_position(0, 3), dense(), layer_norm(), layers::cos(), dense()}), x);
        }) ==
        "layers[0] (index): expected a mask that leaves a position after this layer, got none of 1 (input 2 "
        "of x)");
}

TEST_CASE("inputs without a position are found by everything that computes kernels") {
  const Inputs<double> x = AlmostNothing().inputs(), whole = random_inputs(2, {2, 6, 2});
  const Network network({dense(), repeat(1, {sum({{1, {}}, {1, {relu(), conv({{1}})}}})}),
                         repeat(1, {relu(), slice({{2, std::nullopt, 1}})}), global_sum_pool()});
  const std::string start =
      "layers[2].layers[1] (slice): expected a mask that leaves a position after this layer, got none of 4 ";
  const auto error = [](const auto& body) { return error_message<NetworkError>(body); };
  CHECK(error([&] { return gram(network, x); }) == start + "(input 2 of x)");
  CHECK(error([&] { return gram(network, whole, x); }) == start + "(input 2 of x2)");
  CHECK(error([&] { return gram(network, x, whole); }) == start + "(input 2 of x1)");
  CHECK(error([&] { return gram_diagonal(network, x); }) == start + "(input 2 of x)");
  CHECK(error([&] { return GramTiles<double>(network, x); }) == start + "(input 2 of x)");
  CHECK(error([&] { return PreparedInputs<double>(network, x); }) == start + "(input 2 of x)");
  CHECK(error([&] { return PreparedInputs<double>(network, whole).gram_with(x); }) ==
        start + "(input 2 of x1)");
  CHECK(error([&] { return position_covariances(network, x, 2, 0); }) == start + "(input 2 of x)");
  CHECK(error([&] { return position_covariances(network, whole, 0, x, 2); }) == start + "(input 2 of x2)");
  CHECK(position_covariances(network, x, 1, 0).nngp.size() == 1);
}

TEST_CASE("a branch that leaves nothing is named") {
  const Inputs<double> x = AlmostNothing().inputs();
  const auto part = [](Index begin, Index end) { return Layers{slice({{begin, end, 1}}), dense()}; };
  CHECK(error_message<NetworkError>([&] {
          return gram(Network({concat_positions(0, {part(0, 3), part(3, 6)}), flatten()}), x);
        }) ==
        "layers[0].branches[1].layers[0] (slice): expected a mask that leaves a position after this layer, "
        "got "
        "none of 3 (input 2 of x)");
}

TEST_CASE("softmax over positions of which none counts") {
  AlmostNothing given;
  given.mask(2, 0) = false;
  given.mask(2, 5) = true;
  const models::CrossAttentionOptions options{.sources = 2, .longest = 6};
  Layers layers{dense()};
  for (const Layer& layer : models::cross_attention(options)) layers.push_back(layer);
  layers.push_back(global_average_pool());
  CHECK(error_message<NetworkError>([&] { return gram(Network(layers), given.inputs()); }) ==
        "layers[1] (attention): expected a mask that leaves every position one that it sees, got none for "
        "position "
        "5 (input 2 of x)");
  // A single source is enough.
  given.mask(2, 1) = true;
  CHECK(gram(Network(layers), given.inputs()).nngp.allFinite());
  given.mask(2, 1) = false;
  // Without its normalisation there is nothing to divide by.
  models::CrossAttentionOptions relu_weights = options;
  relu_weights.attention.weights = AttentionWeights::elementwise(relu());
  Layers elementwise{dense()};
  for (const Layer& layer : models::cross_attention(relu_weights)) elementwise.push_back(layer);
  elementwise.push_back(global_sum_pool());
  CHECK(gram(Network(elementwise), given.inputs()).nngp(2, 2) == 0);
}

}  // namespace
}  // namespace widelimit::testing
