// Identities between networks (docs/theory/kernel-recursion.md, section 5): each holds exactly, so results
// agree up to rounding.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "support/random_inputs.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

constexpr double rounding = 1e-13;

bool close(const Matrix<double>& left, const Matrix<double>& right, double tolerance = rounding) {
  return (left - right).norm() <= tolerance * right.norm();
}

bool close(const GramResult<double>& left, const GramResult<double>& right) {
  return close(left.nngp, right.nngp) && close(left.ntk, right.ntk);
}

GramResult<double> kernels(const Layers& layers, const xt::xarray<double>& x) {
  return gram<double>(Network(layers), x);
}

GramResult<double> kernels(const Layers& layers, const xt::xarray<double>& x, const xt::xarray<double>& y) {
  return gram<double>(Network(layers), x, y);
}

Layers joined(Layers first, const Layers& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

const Layer conv3 = conv({{3, 3}, {}, Padding::same, 1.7, 0.1});
const Layers trunk{conv3, relu(), conv3};
const std::vector<Index> images{3, 4, 5, 2};

TEST_CASE("softmax attention without logits and flatten is global average pooling") {
  const auto x = random_inputs(1, images);
  AttentionOptions options;
  options.query_key_std = 0;
  const auto attended = kernels(joined(trunk, {attention(options), flatten()}), x);
  const auto pooled = kernels(joined(trunk, {global_average_pool()}), x);
  CHECK(close(attended.nngp, pooled.nngp));
  CHECK(close(attended.ntk, pooled.ntk + 2 * pooled.nngp));
  // With logits it is something else.
  options.query_key_std = 1;
  CHECK_FALSE(close(kernels(joined(trunk, {attention(options), flatten()}), x).nngp, pooled.nngp, 1e-3));
}

TEST_CASE("untied softmax attention has no logits") {
  const auto x = random_inputs(2, images);
  AttentionOptions tied, untied;
  tied.query_key_std = 0;
  untied.query_key_weights = QueryKeyWeights::untied;
  CHECK(close(kernels(joined(trunk, {attention(tied), flatten()}), x),
              kernels(joined(trunk, {attention(untied), flatten()}), x)));
}

TEST_CASE("a 1x1 convolution is a dense layer") {
  const auto x = random_inputs(3, images);
  for (const Padding padding : {Padding::same, Padding::valid, Padding::circular})
    for (const Layer& readout : {flatten(), global_average_pool()})
      CHECK(close(kernels({conv3, relu(), conv({{1, 1}, {}, padding, 1.3, 0.2}), layers::erf(), readout}, x),
                  kernels({conv3, relu(), dense({1.3, 0.2}), layers::erf(), readout}, x)));
}

/// Every image moved by the steps along its two axes, around the border.
xt::xarray<double> shifted(const xt::xarray<double>& x, std::size_t down, std::size_t right) {
  xt::xarray<double> result = xt::xarray<double>::from_shape(x.shape());
  const auto& s = x.shape();
  for (std::size_t n = 0; n < s[0]; ++n)
    for (std::size_t i = 0; i < s[1]; ++i)
      for (std::size_t j = 0; j < s[2]; ++j)
        for (std::size_t c = 0; c < s[3]; ++c)
          result(n, (i + down) % s[1], (j + right) % s[2], c) = x(n, i, j, c);
  return result;
}

TEST_CASE("global average pooling after circular convolutions does not see cyclic shifts") {
  const auto x = random_inputs(4, images), y = random_inputs(5, images);
  const Layer circular = conv({{3, 2}, {}, Padding::circular, 1.7, 0.1});
  const Layers network{circular, relu(), circular, layers::erf(), global_average_pool()};
  const auto expected = kernels(network, x, y);
  CHECK(close(kernels(network, shifted(x, 1, 0), y), expected));
  CHECK(close(kernels(network, x, shifted(y, 3, 2)), expected));
  CHECK(close(kernels(network, shifted(x, 2, 4), shifted(y, 1, 1)), expected));
  // With zeros beyond the border it does.
  const Layers same{conv3, relu(), conv3, layers::erf(), global_average_pool()};
  CHECK_FALSE(close(kernels(same, shifted(x, 1, 0), y).nngp, kernels(same, x, y).nngp, 1e-6));
}

Layer residual_attention(double alpha) {
  AttentionOptions options;
  options.weights = AttentionWeights::elementwise(identity());
  options.positions = PositionalEncodings{StructuredPositions{0.6, 1.5}, 0, 1, ValueEncodings::absent};
  return sum({{std::sqrt(alpha), {}}, {std::sqrt(1 - alpha), {attention(options)}}});
}

TEST_CASE("residual attention with alpha = 1 is the identity") {
  const auto x = random_inputs(6, images);
  CHECK(close(kernels(joined(trunk, {residual_attention(1), relu(), flatten()}), x),
              kernels(joined(trunk, {relu(), flatten()}), x)));
  CHECK_FALSE(close(kernels(joined(trunk, {residual_attention(0.5), relu(), flatten()}), x).nngp,
                    kernels(joined(trunk, {relu(), flatten()}), x).nngp, 1e-3));
}

TEST_CASE("structured attention that weighs positions with 0 is vanilla attention") {
  const auto x = random_inputs(7, images);
  AttentionOptions vanilla, structured;
  structured.positions = PositionalEncodings{StructuredPositions{0.6, 1.5}, 1, 0, ValueEncodings::present};
  const auto expected = kernels(joined(trunk, {attention(vanilla), layer_norm(), flatten()}), x);
  CHECK(close(kernels(joined(trunk, {attention(structured), layer_norm(), flatten()}), x), expected));
  structured.positions->position_weight = 0.5;
  CHECK_FALSE(close(kernels(joined(trunk, {attention(structured), layer_norm(), flatten()}), x).nngp,
                    expected.nngp, 1e-3));
}

TEST_CASE("permuting the positions of all inputs permutes attention's output") {
  const std::vector<Index> sequences{3, 6, 2};
  const auto x = random_inputs(8, sequences);
  xt::xarray<double> permuted = x;
  const std::array<std::size_t, 6> order{3, 0, 5, 1, 4, 2};
  for (std::size_t n = 0; n < 3; ++n)
    for (std::size_t i = 0; i < 6; ++i)
      for (std::size_t c = 0; c < 2; ++c) permuted(n, i, c) = x(n, order[i], c);
  for (const bool with_identity : {false, true}) {
    AttentionOptions options;
    options.bias_variance = 0.1;
    if (with_identity)
      options.positions = PositionalEncodings{IdentityPositions{0.8}, 0.5, 0.7, ValueEncodings::present};
    // Flatten pairs equal positions, so it sees the output up to a common permutation.
    const Layers network{dense({1.5, 0.1}), attention(options), layers::erf(), flatten()};
    CHECK(close(kernels(network, permuted), kernels(network, x)));
  }
  AttentionOptions structured;
  structured.positions = PositionalEncodings{StructuredPositions{1, 2}, 1, 1, ValueEncodings::absent};
  const Layers network{dense({1.5, 0.1}), attention(structured), layers::erf(), flatten()};
  CHECK_FALSE(close(kernels(network, permuted).nngp, kernels(network, x).nngp, 1e-4));
}

TEST_CASE("depth-1 ReLU gives the arc-cosine kernels of order 1 and 0") {
  const auto x = random_inputs(9, {4, 3}), y = random_inputs(10, {5, 3});
  const double w = 1.6, b = 0.3;
  const auto computed = kernels({dense({w, b}), relu(), dense({2, 0})}, x, y);
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < 5; ++j) {
      double p = b, q = b, c = b;
      for (std::size_t k = 0; k < 3; ++k) {
        p += w * x(i, k) * x(i, k) / 3;
        q += w * y(j, k) * y(j, k) / 3;
        c += w * x(i, k) * y(j, k) / 3;
      }
      const double theta = std::acos(c / std::sqrt(p * q)), pi = std::numbers::pi;
      const double order_1 = std::sqrt(p * q) / pi * (std::sin(theta) + (pi - theta) * std::cos(theta));
      const double order_0 = (pi - theta) / pi;
      const auto row = static_cast<Index>(i), column = static_cast<Index>(j);
      CHECK(computed.nngp(row, column) == doctest::Approx(order_1).epsilon(rounding).scale(0));
      CHECK(computed.ntk(row, column) == doctest::Approx(order_1 + c * order_0).epsilon(rounding).scale(0));
    }
}

TEST_CASE("a product with a constant branch scales, a sum adds, a concatenation averages") {
  const auto x = random_inputs(11, images);
  const auto plain = kernels(joined(trunk, {flatten()}), x);
  const auto gated = kernels(joined(trunk, {product({{1, {}}, {0.5, {dense({0, 4})}}}), flatten()}), x);
  CHECK(close(gated.nngp, plain.nngp));  // 0.25 * 4
  CHECK(close(gated.ntk, plain.ntk + plain.nngp));
  const auto doubled = kernels(joined(trunk, {sum({{1, {dense()}}, {1, {dense()}}}), flatten()}), x);
  const auto once = kernels(joined(trunk, {dense(), flatten()}), x);
  CHECK(close(doubled.nngp, 2 * once.nngp));
  CHECK(close(doubled.ntk, 2 * once.ntk));
  const auto halves =
      kernels(joined(trunk, {concat({{0.5, {dense()}}, {0.5, {dense()}}}), relu(), flatten()}), x);
  CHECK(close(halves, kernels(joined(trunk, {dense(), relu(), flatten()}), x)));
}

TEST_CASE("repeat is the layers written out") {
  const auto x = random_inputs(12, images);
  CHECK(close(kernels({conv3, repeat(3, {relu(), conv3}), flatten()}, x),
              kernels({conv3, relu(), conv3, relu(), conv3, relu(), conv3, flatten()}, x)));
}

TEST_CASE("norms of raw inputs are taken on the inputs themselves") {
  const auto x = random_inputs(13, images);
  xt::xarray<double> centred = x;
  for (std::size_t n = 0; n < 3; ++n)
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t j = 0; j < 5; ++j) {
        const double mean = (x(n, i, j, 0) + x(n, i, j, 1)) / 2, half = (x(n, i, j, 0) - x(n, i, j, 1)) / 2;
        centred(n, i, j, 0) = (x(n, i, j, 0) - mean) / std::sqrt(half * half + 1e-12);
        centred(n, i, j, 1) = (x(n, i, j, 1) - mean) / std::sqrt(half * half + 1e-12);
      }
  CHECK(close(kernels({layer_norm(), conv3, relu(), flatten()}, x),
              kernels({conv3, relu(), flatten()}, centred)));
}

}  // namespace
}  // namespace widelimit::testing
