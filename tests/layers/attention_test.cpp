#include "widelimit/layers/attention.hpp"

#include <doctest/doctest.h>

#include "layers/layer_errors.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/dense.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

AttentionOptions with(const PositionalEncodings& positions) {
  AttentionOptions options;
  options.positions = positions;
  return options;
}

std::string attention_error(const AttentionOptions& options) {
  return error_of([&] { return attention(options); });
}

TEST_CASE("biases of queries and keys, and decaying positions") {
  AttentionOptions options;
  options.query_bias_variance = -1;
  CHECK(error_of([&] { return attention(options); }) ==
        "attention: query_bias_variance must be finite and not negative, got -1");
  options.query_bias_variance = 0.5;
  CHECK(error_of([&] { return attention(options); }) ==
        "attention: tied query and key weights share their biases; expected equal query_bias_variance and "
        "key_bias_variance, got 0.5 and 0");
  options.query_key_weights = QueryKeyWeights::untied;
  CHECK(error_of([&] { return attention(options); }) == "no error");
  const auto decay = [](const DecayPositions& positions) {
    AttentionOptions decaying;
    decaying.positions = PositionalEncodings::added(positions);
    return error_of([&] { return attention(decaying); });
  };
  CHECK(decay({{1, 0.5}}) == "no error");
  CHECK(decay({{}}) == "attention: positions' decay needs at least the value at distance 0, got none");
  CHECK(decay({{1, nan}}) == "attention: values[1] must be finite, got nan");
  CHECK(decay({{1}, 0}) == "attention: the power of distances must be positive and finite, got 0");
  CHECK(decay({{1}, -0.5}) == "attention: the power of distances must be positive and finite, got -0.5");
  CHECK(decay({{1}, nan}) == "attention: the power of distances must be positive and finite, got nan");
  CHECK(decay({{1, 0.5}, 1.5}) ==
        "attention: the power of distances is 1.5, so that they are not whole: expected `distances`, where "
        "the values "
        "stand, got none");
  CHECK(decay({{1, 0.5}, 1.5, 1, {0, 1}}) == "no error");
  CHECK(decay({{1, 0.5}, 2, 1, {0}}) ==
        "attention: positions' decay needs a distance for each value, got 1 and 2");
  CHECK(decay({{1, 0.5}, 2, 1, {1, 2}}) == "attention: distances[0] must be 0, got 1");
  CHECK(decay({{1, 0.5}, 2, 1, {0, 0}}) ==
        "attention: distances[1] must be finite and above the one before it, 0, got 0");
  CHECK(decay({{1, 0.5}, 2, 1, {0, nan}}) ==
        "attention: distances[1] must be finite and above the one before it, 0, got nan");
  const auto whole = [](double) { return 1.0; };
  CHECK(error_of([&] { return DecayPositions::within(whole, {3}, 0); }) ==
        "positions' decay: the power of distances must be positive and finite, got 0");
  CHECK(error_of([&] {
          return DecayPositions::within(whole, {2000, 2000}, 1.5);
        }) == "positions' decay: there may be up to 1048576 positions, got 4000000");
  CHECK(decay({{1}, 1, -1}) == "attention: rho must be finite and not negative, got -1");
  CHECK(error_of([] { return DecayPositions::of([](double) { return 1.0; }, -1); }) ==
        "positions' decay: the largest distance must be from 0 to 1048576, got -1");
  CHECK(error_of([] { return PositionalEncodings::appended(IdentityPositions{}, 3, 0); }) ==
        "positional encodings: channels must be at least 1, got 3 of the input and 0 appended ones");
}

TEST_CASE("attention's options fit each other") {
  AttentionOptions untied;
  untied.query_key_weights = QueryKeyWeights::untied;
  CHECK(attention_error(untied) == "no error");
  untied.weights = AttentionWeights::elementwise(relu());
  CHECK(attention_error(untied).find(
            "attention: inverse_width with untied query and key weights needs softmax") == 0);
  untied.scaling = AttentionScaling::inverse_sqrt_width;
  CHECK(attention_error(untied) == "no error");
  untied.query_key_weights = QueryKeyWeights::tied;
  CHECK(attention_error(untied) ==
        "attention: inverse_sqrt_width needs untied query and key weights, got tied");
  CHECK(error_of([] { return AttentionWeights::elementwise(dense()); }) ==
        "expected a nonlinearity such as relu, got the layer dense");
}

TEST_CASE("attention's rotary positions, biases and masks") {
  AttentionOptions options;
  options.sequence.rotary = RotaryPositions{};
  CHECK(attention_error(options) == "attention: rotary positions need at least one frequency, got none");
  options.sequence.rotary = RotaryPositions{{1, nan}};
  CHECK(attention_error(options) ==
        "attention: rotary.frequencies[1] must be within -1000000 .. 1000000, got nan");
  options.sequence.rotary = RotaryPositions{{-1e7}};
  CHECK(attention_error(options) ==
        "attention: rotary.frequencies[0] must be within -1000000 .. 1000000, got -10000000");
  CHECK(error_of([] { return RotaryPositions::with_base(0, 4); }) ==
        "rotary positions: base must be positive and finite, got 0");
  CHECK(error_of([] { return RotaryPositions::with_base(100, 0); }) ==
        "rotary positions: pairs must be from 1 to 65536, got 0");
  CHECK(RotaryPositions::with_base(100, 2).frequencies == std::vector<double>{1, 0.1});
  options.sequence.rotary.reset();
  options.sequence.alibi_slope = -1;
  CHECK(attention_error(options) == "attention: alibi must be finite and not negative, got -1");
  options.sequence.alibi_slope = 0.5;
  options.weights = AttentionWeights::softmax1();
  CHECK(attention_error(options) == "no error");
  options.weights = AttentionWeights::elementwise(relu());
  CHECK(attention_error(options) ==
        "attention: alibi needs softmax or softmax1 weights, got relu; leave it out or change the weights");
  options.sequence.alibi_slope = 0;
  options.sequence.window = 0;
  CHECK(attention_error(options) == "attention: window must be at least 1, got 0");
  options.sequence.window.reset();
  options.sequence.prefix = 2;
  CHECK(attention_error(options) == "attention: a prefix needs a causal mask, got the prefix 2 without one");
  options.sequence.prefix = -2;
  CHECK(attention_error(options) == "attention: prefix must not be negative, got -2");
  options.sequence.prefix = 0;
  options.sequence.mask_matrix = Matrix<bool>::Constant(2, 3, true);
  CHECK(attention_error(options) == "attention: the mask must be square, got 2 x 3");
}

TEST_CASE("attention's numbers") {
  AttentionOptions options;
  options.query_key_std = -1;
  CHECK(attention_error(options) == "attention: query_key_std must be finite and not negative, got -1");
  options = {};
  options.output_value_variance = infinity;
  CHECK(attention_error(options) ==
        "attention: output_value_variance must be finite and not negative, got inf");
  options = {};
  options.bias_variance = -2;
  CHECK(attention_error(options) == "attention: bias_variance must be finite and not negative, got -2");
  options = {};
  options.samples = 0;
  CHECK(attention_error(options) == "attention: samples must be at least 1, got 0");
  options.samples = 1'000'000'000'000;
  CHECK(attention_error(options) == "attention: samples must be at most 10000000, got 1000000000000");
}

TEST_CASE("positional encodings") {
  CHECK(attention_error(with({IdentityPositions{-1}, 1, 1, ValueEncodings::absent})) ==
        "attention: rho must be finite and not negative, got -1");
  CHECK(attention_error(with({StructuredPositions{1, -0.5}, 1, 1, ValueEncodings::absent})) ==
        "attention: phi must be finite and not negative, got -0.5");
  CHECK(attention_error(with({IdentityPositions{}, -1, 1, ValueEncodings::absent})) ==
        "attention: input_weight must be finite and not negative, got -1");
  CHECK(attention_error(with({IdentityPositions{}, 1, nan, ValueEncodings::absent})) ==
        "attention: position_weight must be finite and not negative, got nan");
  const auto matrix = [](double a, double b, double c, double d) {
    Matrix<double> covariance(2, 2);
    covariance << a, b, c, d;
    return attention_error(with({MatrixPositions{covariance, 1}, 1, 1, ValueEncodings::absent}));
  };
  CHECK(matrix(1, 0.5, 0.5, 1) == "no error");
  CHECK(matrix(1, 1, 1, 1) == "no error");
  CHECK(matrix(1, 0.5, 0.4, 1) ==
        "attention: the positions' matrix must be symmetric, got 0.5 at [0][1] and 0.4 at [1][0]");
  CHECK(matrix(1, 2, 2, 1)
            .find("attention: the positions' matrix must be positive semidefinite, got the eigenvalue -") ==
        0);
  CHECK(matrix(1, nan, 0, 1) == "attention: matrix[0][1] must be finite, got nan");
  CHECK(
      attention_error(with({MatrixPositions{Matrix<double>::Zero(2, 3), 1}, 1, 1, ValueEncodings::absent})) ==
      "attention: the positions' matrix must be square, got 2 x 3");
}

}  // namespace
}  // namespace widelimit::testing
