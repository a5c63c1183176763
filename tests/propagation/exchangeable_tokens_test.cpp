#include "propagation/exchangeable_tokens.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/dropout.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/propagation/repeated_block.hpp"

using namespace widelimit;
using namespace widelimit::propagation;
using doctest::Approx;
using layers::AttentionOptions;

namespace {

Matrix<double> alike(Index tokens, double q, double cosine) {
  Matrix<double> gram = Matrix<double>::Constant(tokens, tokens, q * cosine);
  gram.diagonal().setConstant(q);
  return gram;
}

/// The same for all that is compared, but to the last bits of two entries: these tokens run one by one.
Matrix<double> hardly_exchangeable(Index tokens, double q, double cosine) {
  Matrix<double> gram = alike(tokens, q, cosine);
  gram(0, 1) = gram(1, 0) = q * cosine * (1 + 1e-14);
  return gram;
}

Network tokenwise_block(const AttentionOptions& attention) {
  return Network(
      {layers::sum({{0.8, {}}, {0.7, {layers::layer_norm(), layers::attention(attention)}}}),
       layers::repeat(2, {layers::sum({{0.6, {}},
                                       {0.9,
                                        {layers::rms_norm({.epsilon = 0.1}),
                                         layers::dense({.weight_variance = 1.7, .bias_variance = 0.2}),
                                         layers::relu(), layers::dropout(0.8), layers::dense()}}})}),
       layers::product({{1, {layers::dense()}}, {0.5, {layers::dense({.bias_variance = 1}), layers::erf()}}}),
       layers::dense({.weight_variance = 1.2})});
}

AttentionOptions fixed_weights() {
  return {.query_key_std = 1.3, .output_value_variance = 0.9, .bias_variance = 0.1};
}

AttentionOptions gaussian_logits() {
  AttentionOptions options = fixed_weights();
  options.scaling = layers::AttentionScaling::inverse_sqrt_width;
  options.query_bias_variance = 0.3;
  options.key_bias_variance = 0.2;
  options.samples = 2048;
  return options;
}

bool agrees_with(const numerics::Estimate& exact, const numerics::Estimate& drawn) {
  return std::abs(exact.value - drawn.value) <= 4.5 * drawn.standard_error + 1e-9 * std::abs(exact.value);
}

}  // namespace

TEST_CASE("exchangeable tokens: two for all, and back") {
  const Matrix<double> gram = alike(5, 1.5, 0.2);
  const auto two = two_of_exchangeable(gram);
  REQUIRE(two.has_value());
  CHECK(*two == gram.topLeftCorner(2, 2));
  CHECK(exchangeable_gram(*two, 5) == gram);
  CHECK_FALSE(two_of_exchangeable(hardly_exchangeable(5, 1.5, 0.2)).has_value());
  CHECK_FALSE(two_of_exchangeable(alike(1, 1.5, 0.2)).has_value());
}

TEST_CASE("exchangeable tokens: exact blocks, against all tokens one by one") {
  AttentionOptions untied;
  untied.query_key_weights = layers::QueryKeyWeights::untied;
  for (const AttentionOptions& attention : {fixed_weights(), untied})
    for (const double cosine : {-0.1, 0.3, 0.99}) {
      CAPTURE(cosine);
      const Network block = tokenwise_block(attention);
      REQUIRE(block_of_two(block, 6).has_value());
      const auto found = propagate(block, alike(6, 1.3, cosine), 4),
                 expected = propagate(block, hardly_exchangeable(6, 1.3, cosine), 4);
      REQUIRE(found.size() == 5);
      for (std::size_t l = 0; l < found.size(); ++l) {
        CHECK(found[l].gram.rows() == 6);
        CHECK(found[l].gram.isApprox(expected[l].gram, 1e-11));
        CHECK(found[l].squared_norm.value == Approx(expected[l].squared_norm.value).epsilon(1e-11).scale(0));
        CHECK(found[l].cosine.value == Approx(expected[l].cosine.value).epsilon(1e-11).scale(0));
        CHECK(found[l].log_gradient.value == Approx(expected[l].log_gradient.value).epsilon(1e-10));
      }
      const auto gradients = layer_gradients(block, alike(6, 1.3, cosine), 3),
                 one_by_one = layer_gradients(block, hardly_exchangeable(6, 1.3, cosine), 3);
      REQUIRE(gradients.size() == one_by_one.size());
      for (std::size_t k = 0; k < gradients.size(); ++k) {
        CHECK(gradients[k].path == one_by_one[k].path);
        CHECK(gradients[k].kind == one_by_one[k].kind);
        CHECK(gradients[k].parameter == one_by_one[k].parameter);
        for (std::size_t l = 0; l < 3; ++l) {
          const double found_here = gradients[k].blocks[l].value,
                       expected_here = one_by_one[k].blocks[l].value;
          CHECK(std::abs(found_here - expected_here) <= 1e-10 * std::abs(expected_here));
        }
      }
    }
}

TEST_CASE("exchangeable tokens: Gaussian logits are integrated over, against draws") {
  const Network block = tokenwise_block(gaussian_logits());
  const auto found = propagate(block, alike(5, 1.3, 0.3), 3),
             drawn = propagate(block, hardly_exchangeable(5, 1.3, 0.3), 3);
  for (std::size_t l = 1; l < found.size(); ++l) {
    CAPTURE(l);
    CHECK(found[l].cosine.standard_error == 0);
    CHECK(drawn[l].cosine.standard_error > 0);
    CHECK(agrees_with(found[l].squared_norm, drawn[l].squared_norm));
    CHECK(agrees_with(found[l].cosine, drawn[l].cosine));
    CHECK(agrees_with(found[l].log_gradient, drawn[l].log_gradient));
  }
  const auto gradients = layer_gradients(block, alike(5, 1.3, 0.3), 2),
             of_drawn = layer_gradients(block, hardly_exchangeable(5, 1.3, 0.3), 2);
  REQUIRE(gradients.size() == of_drawn.size());
  for (std::size_t k = 0; k < gradients.size(); ++k)
    for (std::size_t l = 0; l < 2; ++l) {
      CAPTURE(gradients[k].path);
      CAPTURE(gradients[k].parameter);
      CHECK(agrees_with(gradients[k].blocks[l], of_drawn[k].blocks[l]));
    }
}

TEST_CASE("exchangeable tokens: any number of them takes no longer") {
  const Network block = tokenwise_block(gaussian_logits());
  const auto tokens = propagate(block, alike(512, 1, 0.2), 6);
  CHECK(tokens.back().gram.rows() == 512);
  CHECK(layer_gradients(block, alike(512, 1, 0.2), 6).size() > 6);
  CHECK(std::isfinite(block_exponents(block, 8192, 4).gradient.value));
}

TEST_CASE("exchangeable tokens: logits that are too sharp for integrals are drawn") {
  AttentionOptions sharp = gaussian_logits();
  sharp.query_key_std = 40;
  sharp.samples = 16;
  const auto tokens = propagate(tokenwise_block(sharp), alike(4, 1, 0), 1);
  CHECK(tokens.back().squared_norm.standard_error > 0);
}

TEST_CASE("exchangeable tokens: not where a layer knows a token's place") {
  const auto refuses = [](const Layers& block) { return !block_of_two(Network(block), 4).has_value(); };
  AttentionOptions causal, encoded, softmax1, elementwise, windowed;
  causal.mask = AttentionMask::causal;
  encoded.positions = layers::PositionalEncodings{};
  softmax1.weights = layers::AttentionWeights::softmax1();
  elementwise.weights = layers::AttentionWeights::elementwise(layers::relu());
  windowed.sequence.window = 2;
  for (const AttentionOptions& options : {causal, encoded, softmax1, elementwise, windowed}) {
    CHECK(refuses({layers::attention(options)}));
    CHECK(refuses({layers::repeat(2, {layers::attention(options)})}));
    CHECK(refuses({layers::sum({{1, {}}, {1, {layers::attention(options)}}})}));
  }
  CHECK(refuses({layers::conv({.filter = {3}, .strides = {}})}));
  CHECK(refuses({layers::layer_norm({.axes = layers::NormAxes::channels_and_space})}));
  CHECK(refuses({layers::repeat(2, {layers::concat_positions(0, {{layers::dense()}})})}));
  CHECK_FALSE(refuses({layers::attention(), layers::layer_norm()}));
}
