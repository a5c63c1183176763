#include "widelimit/kernel/position_covariances.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/layers/positions.hpp"

namespace widelimit::testing {
namespace {

using namespace layers;

const Layers open_layers{conv({{3, 3}, {2, 1}, Padding::same, 1.3, 0.2}), relu(),
                         conv({{2, 2}, {}, Padding::same, 1, 0.1})};

TEST_CASE("covariances of positions are the Gram matrices of networks that read one position each") {
  const auto x = random_inputs(3, {3, 4, 3, 2}), y = random_inputs(4, {2, 4, 3, 2});
  const auto all = position_covariances(Network(open_layers), Inputs<double>(x), 2, Inputs<double>(y), 1);
  REQUIRE(all.nngp.rows() == 6);
  REQUIRE(all.nngp.cols() == 6);
  for (Index row = 0; row < 2; ++row)
    for (Index column = 0; column < 3; ++column) {
      Layers layers = open_layers;
      layers.insert(layers.end(), {index_position(0, row), index_position(0, column)});
      const auto one = gram(Network(layers), Inputs<double>(x), Inputs<double>(y));
      const Index a = row * 3 + column;
      CHECK(all.nngp(a, a) == doctest::Approx(one.nngp(2, 1)).epsilon(1e-13));
      CHECK(all.ntk(a, a) == doctest::Approx(one.ntk(2, 1)).epsilon(1e-13));
    }
  Layers pooled = open_layers;
  pooled.push_back(global_average_pool());
  const auto mean = gram(Network(pooled), Inputs<double>(x), Inputs<double>(y));
  CHECK(all.nngp.mean() == doctest::Approx(mean.nngp(2, 1)).epsilon(1e-13));
  CHECK(all.ntk.mean() == doctest::Approx(mean.ntk(2, 1)).epsilon(1e-13));
}

TEST_CASE("an input with itself: symmetric, with its variances, and dropout's") {
  const auto x = random_inputs(3, {3, 4, 3, 2});
  const auto itself =
      position_covariances(Network(open_layers), Inputs<float>(xt::xarray<float>(xt::cast<float>(x))), 1, 1);
  CHECK(itself.nngp == itself.nngp.transpose());
  CHECK(itself.nngp.diagonal().minCoeff() > 0);
  const auto other = position_covariances(Network(open_layers), Inputs<double>(x), 1, 2),
             back = position_covariances(Network(open_layers), Inputs<double>(x), 2, 1);
  CHECK((other.ntk - back.ntk.transpose()).norm() <= 1e-14 * other.ntk.norm());
}

TEST_CASE("raw inputs, vectors, lengths and networks that end without positions") {
  const auto x = random_inputs(5, {2, 5, 3});
  const auto raw = position_covariances(Network({}), Inputs<double>(x), 0, 1);
  REQUIRE(raw.nngp.rows() == 5);
  double product = 0;
  for (std::size_t c = 0; c < 3; ++c) product += x(0, 2, c) * x(1, 4, c) / 3;
  CHECK(raw.nngp(2, 4) == doctest::Approx(product));
  CHECK(raw.ntk.norm() == 0);

  const Network closed({dense({1, 0.1}), relu(), flatten(), dense({1, 0.2})});
  const auto number = position_covariances(closed, Inputs<double>(x), 0, 1);
  const auto expected = gram(closed, Inputs<double>(x));
  REQUIRE(number.nngp.size() == 1);
  CHECK(number.nngp(0, 0) == doctest::Approx(expected.nngp(0, 1)).epsilon(1e-14));
  CHECK(number.ntk(0, 0) == doctest::Approx(expected.ntk(0, 1)).epsilon(1e-14));

  const std::vector<Index> lengths{5, 3};
  const auto ragged = position_covariances(Network({conv({{3}}), relu()}), Inputs<double>(x, lengths), 1, 0);
  CHECK(ragged.nngp.rows() == 3);
  CHECK(ragged.nngp.cols() == 5);
}

TEST_CASE("masked positions have no covariance, sampled layers have a mean") {
  const auto x = random_inputs(5, {2, 4, 3});
  xt::xarray<bool> mask = xt::ones<bool>({2, 4});
  mask(0, 1) = mask(1, 3) = false;
  AttentionOptions sampled;
  sampled.scaling = AttentionScaling::inverse_sqrt_width;
  sampled.samples = 64;
  sampled.bias_variance = 0.3;
  const Network open({dense({1, 0.2}), attention(sampled)});
  const auto masked = position_covariances(open, Inputs<double>(x, mask), 0, 1);
  for (Index a = 0; a < 4; ++a)
    for (Index b = 0; b < 4; ++b) CHECK((masked.nngp(a, b) == 0) == (a == 1 || b == 3));
  const auto all = position_covariances(open, Inputs<double>(x), 0, 1);
  const Network closed({dense({1, 0.2}), attention(sampled), global_average_pool()});
  const auto mean = gram(closed, Inputs<double>(x));
  CHECK(all.nngp.mean() == doctest::Approx(mean.nngp(0, 1)).epsilon(1e-12));
}

TEST_CASE("inputs that are not there, and networks that do not fit") {
  const Inputs<double> x(random_inputs(5, {2, 4, 3}));
  CHECK_THROWS_WITH_AS(static_cast<void>(position_covariances(Network({}), x, 2, 0)),
                       "position_covariances: expected an input from 0 to 1 of x, got 2", ArgumentError);
  CHECK_THROWS_WITH_AS(static_cast<void>(position_covariances(Network({}), x, 0, x, -1)),
                       "position_covariances: expected an input from 0 to 1 of x2, got -1", ArgumentError);
  CHECK_THROWS_WITH_AS(static_cast<void>(position_covariances(Network({conv({{3, 3}})}), x, 0, 1)),
                       doctest::Contains("layers[0] (conv): expected inputs with 2 spatial axes"),
                       NetworkError);
}

TEST_CASE("standard errors of sampled layers are those of the Gram matrix") {
  const Inputs<double> x(random_inputs(6, {2, 3, 2}));
  const Layer sampled = attention({.scaling = AttentionScaling::inverse_sqrt_width, .samples = 64});
  const auto found = position_covariances(Network({sampled}), x, 0, 1);
  REQUIRE(found.nngp_error.rows() == 3);
  CHECK(found.ntk_error.minCoeff() > 0);
  const auto first = gram<double>(Network({sampled, index_position(0, 0)}), x);
  CHECK(found.nngp(0, 0) == doctest::Approx(first.nngp(0, 1)).epsilon(1e-12).scale(0));
  CHECK(found.nngp_error(0, 0) == doctest::Approx(first.nngp_error(0, 1)).epsilon(1e-9).scale(0));
  CHECK(found.ntk_error(0, 0) == doctest::Approx(first.ntk_error(0, 1)).epsilon(1e-9).scale(0));
  CHECK(position_covariances(Network({conv({{3}})}), x, 0, 1).nngp_error.size() == 0);
}

TEST_CASE("gram returns the variances of inputs on request") {
  const auto x = random_inputs(3, {3, 4, 2}), y = random_inputs(4, {2, 4, 2});
  const Network network({conv({{3}}), relu(), global_average_pool(), dense({1, 0.1})});
  GramOptions options;
  InputVariances variances;
  options.variances = &variances;
  static_cast<void>(gram(network, Inputs<double>(x), Inputs<double>(y), options));
  CHECK(variances.first == gram(network, Inputs<double>(x)).nngp.diagonal());
  CHECK(variances.second == gram(network, Inputs<double>(y)).nngp.diagonal());
  const Vector<double> first = variances.first;
  options.kernels = Kernels::ntk;
  const auto one = gram(network, Inputs<double>(x), options);
  CHECK(variances.first == first);
  CHECK(variances.second.size() == 0);
  CHECK(one.nngp.size() == 0);
}

}  // namespace
}  // namespace widelimit::testing
