#include "widelimit/finite/finite_network.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::finite;
using namespace widelimit::layers;

FiniteNetwork<double> made(const Layers& layers, const Form& input, const Widths& widths = {},
                           const Heads& heads = {}) {
  return FiniteNetwork<double>(Network(layers), input, widths, heads, 1, 1);
}

TEST_CASE("a dense network is the formula written out") {
  const auto network =
      made({dense({2, 0.3}), relu(), dense({1.5, 0})}, {{}, 2}, {.hidden = 3, .outputs = 1, .layers = {}});
  REQUIRE(network.parameter_count() == 2 * 3 + 3 + 3);
  Vector<double> theta(12);
  theta << 1, -2, 3, 0.5, 1, -1, 0.1, 0.2, 0.3, 2, -1, 4;
  auto changed = network;
  changed.set_parameters(theta);
  Matrix<double> x(1, 2);
  x << 0.7, -0.4;
  double expected = 0;
  for (Index k = 0; k < 3; ++k) {
    const double u =
        std::sqrt(2.0 / 2) * (x(0, 0) * theta[k] + x(0, 1) * theta[3 + k]) + std::sqrt(0.3) * theta[6 + k];
    expected += std::sqrt(1.5 / 3) * std::max(u, 0.0) * theta[9 + k];
  }
  CHECK(changed.forward(x)(0, 0) == doctest::Approx(expected).scale(0).epsilon(1e-14));
}

TEST_CASE("attention is the formula written out") {
  AttentionOptions options;
  options.scaling = AttentionScaling::inverse_sqrt_width;
  options.query_key_std = 1.4;
  options.output_value_variance = 1.7;
  options.mask = AttentionMask::causal;
  const auto network =
      made({attention(options), flatten()}, {{2}, 2}, {.hidden = 1, .outputs = 1, .layers = {}},
           {.count = 1, .key_width = 2, .value_width = 1});
  // W_Q [2, 2], W_K [2, 2], W_V [2, 1], W_O [1, 1]
  const Vector<double>& theta = network.parameters();
  REQUIRE(theta.size() == 11);
  Matrix<double> x(2, 2);
  x << 0.7, -0.4, 0.2, 1.1;
  const Eigen::Map<const Matrix<double>> query(theta.data(), 2, 2), key(theta.data() + 4, 2, 2),
      value(theta.data() + 8, 2, 1);
  const Matrix<double> q = x * query / std::sqrt(2.0), k = x * key / std::sqrt(2.0),
                       v = x * value / std::sqrt(2.0);
  const Matrix<double> logits = 1.4 / std::sqrt(2.0) * q * k.transpose();
  const double first = std::exp(logits(1, 0)), second = std::exp(logits(1, 1));
  const double scale = std::sqrt(1.7) * theta[10];
  xt::xarray<double> input = xt::zeros<double>({1, 2, 2});
  std::copy(x.data(), x.data() + 4, input.data());
  const Matrix<double> output = network.forward(input);
  REQUIRE(output.cols() == 2);
  CHECK(output(0, 0) == doctest::Approx(scale * v(0, 0)).scale(0).epsilon(1e-14));
  CHECK(output(0, 1) == doctest::Approx(scale * (first * v(0, 0) + second * v(1, 0)) / (first + second))
                            .scale(0)
                            .epsilon(1e-14)
                            .scale(0));
}

TEST_CASE("channels are chosen where the network leaves them open") {
  const Layers layers{dense(), relu(), sum({{1, {}}, {1, {dense(), relu(), dense()}}}), dense()};
  // dense 5, inside the branch 7, the branch's end follows the skip connection.
  const auto network = made(layers, {{}, 2}, {.hidden = 4, .outputs = 3, .layers = {5, 7}});
  CHECK(network.parameter_count() == 2 * 5 + 5 * 7 + 7 * 5 + 5 * 3);
  CHECK(network.outputs() == 3);
  CHECK_THROWS_WITH_AS(
      made(layers, {{}, 2}, {.hidden = 4, .outputs = 3, .layers = {5}}),
      "layers[2].branches[1].layers[0] (dense): expected a width for this layer, got 1 widths "
      "in all",
      NetworkError);
  CHECK_THROWS_WITH_AS(made(layers, {{}, 2}, {.hidden = 4, .outputs = 3, .layers = {5, 7, 9}}),
                       "FiniteNetwork: expected 2 widths, one for every place where channels are open, got 3",
                       ArgumentError);
}

TEST_CASE("shares of a concatenation are whole channels") {
  const Layers layers{concat({{0.25, {dense()}}, {0.75, {dense(), relu()}}}), dense()};
  CHECK(made(layers, {{}, 2}, {.hidden = 8, .outputs = 1, .layers = {}}).parameter_count() == 2 * 8 + 8);
  // 10 channels: 2.5 and 7.5.
  CHECK(made(layers, {{}, 2}, {.hidden = 10, .outputs = 1, .layers = {}}).parameter_count() == 2 * 10 + 10);
  const Layers with_input{concat({{0.5, {}}, {0.5, {dense()}}}), dense()};
  CHECK(made(with_input, {{}, 3}, {}).parameter_count() == 3 * 3 + 6);
  // One channel is two thirds of no number of channels; two are.
  const Layers thirds{concat({{2.0 / 3, {}}, {1.0 / 3, {dense()}}}), dense()};
  CHECK_THROWS_AS(made(thirds, {{}, 1}, {}), NetworkError);
  CHECK(made(thirds, {{}, 2}, {}).parameter_count() == 2 * 1 + 3);
  // Three channels are half of six, but a quarter of six is no whole number.
  const Layers quarters{concat({{0.5, {}}, {0.25, {dense()}}, {0.25, {dense()}}}), dense()};
  CHECK_THROWS_AS(made(quarters, {{}, 3}, {}), NetworkError);
  CHECK(made(quarters, {{}, 2}, {}).parameter_count() == 2 * 2 + 4);
}

TEST_CASE("networks that do not fit are errors with a path") {
  CHECK_THROWS_WITH_AS(made({dense(), attention({})}, {{}, 2}),
                       "layers[1] (attention): expected inputs with positions, got vectors; put attention "
                       "before flatten or global pooling",
                       NetworkError);
  CHECK_THROWS_WITH_AS(
      made({dense(),
            sum({{1, {}},
                 {1, {repeat(2, {conv({.filter = {2}, .strides = {}, .padding = Padding::valid})})}}})},
           {{4}, 2}),
      "layers[1] (sum): expected branches of equal shape, got one axis of size 4 (branch 0) and one axis of "
      "size 2 (branch 1)",
      NetworkError);
  CHECK_THROWS_WITH_AS(made({flatten(), dense()}, {{}, 2}),
                       "layers[0] (flatten): expected inputs with positions, got vectors; leave the layer "
                       "out (named networks: axes=0)",
                       NetworkError);
  CHECK_THROWS_WITH_AS(
      made({dense()}, {{4}, 2}),
      "network '': expected no positions after the last layer, got one axis of size 4; add flatten, "
      "global_average_pool or global_sum_pool",
      NetworkError);
  CHECK_THROWS_WITH_AS(made({dense()}, {{}, 2}, {.hidden = 0, .outputs = 1, .layers = {}}),
                       "FiniteNetwork: widths.hidden must be at least 1, got 0", ArgumentError);
  CHECK_THROWS_WITH_AS(made({dense()}, {{}, 2}, {}, {.count = 0}),
                       "FiniteNetwork: heads.count must be at least 1, got 0", ArgumentError);
}

TEST_CASE("inputs, outputs and parameters are checked") {
  auto network = made({dense()}, {{}, 2});
  Matrix<double> x(2, 2);
  x.setOnes();
  CHECK_THROWS_WITH_AS(static_cast<void>(network.forward(Matrix<double>(x.leftCols(1)))),
                       "FiniteNetwork::forward: expected inputs of no positions and 2 channels, got no "
                       "positions and 1 (input 0)",
                       ArgumentError);
  CHECK_THROWS_WITH_AS(static_cast<void>(network.jacobian(x, 1)),
                       "FiniteNetwork::jacobian: output must be in [0, 1), got 1", ArgumentError);
  CHECK_THROWS_WITH_AS(static_cast<void>(network.vector_jacobian(x, Matrix<double>(1, 1))),
                       "FiniteNetwork::vector_jacobian: expected weights [2, 1], got [1, 1]", ArgumentError);
  CHECK_THROWS_WITH_AS(static_cast<void>(network.jacobian_vector(x, Vector<double>(3))),
                       "FiniteNetwork::jacobian_vector: expected a direction of 2 numbers, got 3",
                       ArgumentError);
  CHECK_THROWS_WITH_AS(network.set_parameters(Vector<double>(1)),
                       "FiniteNetwork::set_parameters: expected 2 parameters, got 1", ArgumentError);
}

TEST_CASE("parameters are standard normal and belong to the seed") {
  const Layers layers{dense(), relu(), dense()};
  const FiniteNetwork<double> one(Network(layers), {{}, 200}, {}, {}, 7),
      other(Network(layers), {{}, 200}, {}, {}, 8);
  const FiniteNetwork<float> rounded(Network(layers), {{}, 200}, {}, {}, 7);
  CHECK(one.parameters() != other.parameters());
  CHECK(one.parameters().cast<float>() == rounded.parameters());
  const auto count = static_cast<double>(one.parameter_count());
  CHECK(std::abs(one.parameters().mean()) < 4 / std::sqrt(count));
  CHECK(std::abs(one.parameters().squaredNorm() / count - 1) < 4 * std::sqrt(2 / count));
}

TEST_CASE("a norm in each head gives it unit variance") {
  AttentionOptions options;
  options.weights = AttentionWeights::elementwise(identity());
  options.scaling = AttentionScaling::inverse_sqrt_width;
  const Layers layers{attention(options), flatten()};
  Heads heads{.count = 64, .key_width = 4, .value_width = 8, .norm = HeadNorm::layer_norm};
  const auto x = random_inputs(2, {1, 3, 5});
  xt::xarray<double> large = 10 * x;
  const auto network = made(layers, {{3}, 5}, {.hidden = 256, .outputs = 1, .layers = {}}, heads);
  // The scale of the input, to the third power in the heads, is gone; what stays is of order one.
  CHECK((network.forward(large) - network.forward(x)).norm() < 1e-8 * network.forward(x).norm());
  CHECK(network.forward(x).squaredNorm() / 768 == doctest::Approx(1).scale(0).epsilon(0.3));
}

}  // namespace
}  // namespace widelimit::testing
