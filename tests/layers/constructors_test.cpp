// Every layer's arguments: what is out of range is an error that names layer, field and value.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "support/error_message.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/custom.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/dropout.hpp"
#include "widelimit/layers/exp_normalized.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/network/network_file.hpp"
#include "widelimit/numerics/activations.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

const double nan = std::numeric_limits<double>::quiet_NaN();
const double infinity = std::numeric_limits<double>::infinity();

std::string error_of(const auto& call) { return error_message<ArgumentError>(call); }

TEST_CASE("variances must be finite and not negative") {
  CHECK(error_of([] {
          return dense({-0.1, 0});
        }) == "dense: weight_variance must be finite and not negative, got -0.1");
  CHECK(error_of([] {
          return dense({1, nan});
        }) == "dense: bias_variance must be finite and not negative, got nan");
  CHECK(error_of([] {
          return dense({infinity, 0});
        }) == "dense: weight_variance must be finite and not negative, got inf");
  CHECK(error_of([] { return dense({0, 0}); }) == "no error");
  CHECK(error_of([] {
          return conv({{3}, {}, Padding::same, -1, 0});
        }) == "conv: weight_variance must be finite and not negative, got -1");
  CHECK(error_of([] {
          return local_conv({{3}, {}, Padding::same, 1, -1});
        }) == "local_conv: bias_variance must be finite and not negative, got -1");
  CHECK(error_of([] {
          return layer_norm({NormAxes::channels, -1e-9});
        }) == "layer_norm: epsilon must be finite and not negative, got -1e-09");
  CHECK(error_of([] { return rms_norm({NormAxes::channels, 0}); }) == "no error");
}

TEST_CASE("widths of the standard parametrisation") {
  const auto standard = [](Index width, double scale, bool zero_biases, double bias) {
    return error_of([&] { return dense({1, bias, StandardParametrisation{width, scale, zero_biases}}); });
  };
  CHECK(standard(512, 4, false, 0.1) == "no error");
  CHECK(standard(512, 4, true, 0) == "no error");
  CHECK(standard(0, 1, false, 0) == "dense: input_width must be at least 1, got 0");
  CHECK(standard(1, 0, false, 0) == "dense: width_scale must be positive and finite, got 0");
  CHECK(standard(1, infinity, false, 0) == "dense: width_scale must be positive and finite, got inf");
  CHECK(standard(1, 1, true, 0.5) == "dense: zero_biases needs a bias_variance of 0, got 0.5");
  CHECK(error_of([] {
          return conv_transpose({{3}, {}, Padding::same, 1, 0, StandardParametrisation{-1}});
        }) == "conv_transpose: input_width must be at least 1, got -1");
}

TEST_CASE("axes of norms and of concatenated positions") {
  CHECK(error_of([] {
          return layer_norm({NormAxes::channels, 1, {0, 3}});
        }) == "layer_norm: spatial axes must be 0, 1 or 2, each once, got [0, 3]");
  CHECK(error_of([] {
          return rms_norm({NormAxes::channels_and_space, 1, {0}});
        }) == "rms_norm: spatial_axes go with NormAxes::channels, which leaves the others out");
  CHECK(error_of([] { return concat_positions(3, {{}}); }) == "concat: axis must be 0, 1 or 2, got 3");
  CHECK(error_of([] { return concat_positions(0, {}); }) == "concat: expected at least one branch, got none");
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
  CHECK(decay({{1}, 0}) == "attention: the power of distances must be at least 1, got 0");
  CHECK(decay({{1}, 1, -1}) == "attention: rho must be finite and not negative, got -1");
  CHECK(error_of([] { return DecayPositions::of([](double) { return 1.0; }, -1); }) ==
        "positions' decay: the largest distance must be from 0 to 1048576, got -1");
  CHECK(error_of([] { return PositionalEncodings::appended(IdentityPositions{}, 3, 0); }) ==
        "positional encodings: channels must be at least 1, got 3 of the input and 0 appended ones");
}

TEST_CASE("windows need 1 to 3 positive sizes and as many positive strides") {
  const auto window = [](std::vector<Index> sizes, std::vector<Index> strides) {
    return error_of([&] { return conv({sizes, strides, Padding::same, 1, 0}); });
  };
  CHECK(window({1}, {}) == "no error");
  CHECK(window({1, 2, 3}, {3, 2, 1}) == "no error");
  CHECK(window({}, {}) == "conv: expected a window with 1, 2 or 3 axes, got 0");
  CHECK(window({1, 1, 1, 1}, {}) == "conv: expected a window with 1, 2 or 3 axes, got 4");
  CHECK(window({3, 0}, {}) == "conv: window sizes must be positive, got 0");
  CHECK(window({3, 3}, {1}) == "conv: expected one stride an axis (2), got 1");
  CHECK(window({3}, {0}) == "conv: strides must be positive, got 0");
  CHECK(window({3}, {Index{1} << 20}) == "no error");
  CHECK(window({3}, {4'000'000'000}) == "conv: strides must be at most 1048576, got 4000000000");
  CHECK(error_of([] {
          return average_pool({{0}, {}, Padding::valid});
        }) == "average_pool: window sizes must be positive, got 0");
  CHECK(error_of([] {
          return sum_pool({{2}, {-1}, Padding::valid});
        }) == "sum_pool: strides must be positive, got -1");
  CHECK(error_of([] {
          return sum_pool({{2}, {}, Padding::same, true});
        }) == "sum_pool: normalize_edges is for means; take average_pool");
}

TEST_CASE("branches") {
  CHECK(error_of([] { return sum({}); }) == "sum: expected at least one branch, got none");
  CHECK(error_of([] { return product({}); }) == "product: expected at least one branch, got none");
  CHECK(error_of([] { return sum({{nan, {}}}); }) == "sum: scale must be finite, got nan");
  CHECK(error_of([] { return sum({{-2, {}}}); }) == "no error");
  CHECK(error_of([] { return concat({{0.5, {}}, {0.4, {}}}); }) == "concat: shares must sum to 1, got 0.9");
  CHECK(error_of([] {
          return concat({{1.5, {}}, {-0.5, {}}});
        }) == "concat: share must be in (0, 1], got 1.5");
  CHECK(error_of([] { return concat({{0, {}}, {1, {}}}); }) == "concat: share must be in (0, 1], got 0");
  CHECK(error_of([] { return concat({{1.0 / 3, {}}, {1.0 / 3, {}}, {1.0 / 3, {}}}); }) == "no error");
  CHECK(error_of([] { return repeat(0, {dense()}); }) == "repeat: times must be at least 1, got 0");
  CHECK(error_of([] { return dropout(0); }) == "dropout: keep must be in (0, 1], got 0");
  CHECK(error_of([] { return dropout(1.01); }) == "dropout: keep must be in (0, 1], got 1.01");
  CHECK(error_of([] { return dropout(nan); }) == "dropout: keep must be in (0, 1], got nan");
  CHECK(error_of([] { return dropout(1); }) == "no error");
}

TEST_CASE("layers within layers: their number and depth are limited") {
  CHECK(error_of([] { return repeat(49'999, {dense(), relu()}); }) == "no error");
  CHECK(error_of([] { return repeat(1'000'000, {dense()}); }) ==
        "repeat: expected at most 100000 layers in all, repeats written out, got 1e+06");
  CHECK(error_of([] { return repeat(1000, {repeat(1000, {repeat(1'000'000'000'000, {dense()})})}); }) ==
        "repeat: expected at most 100000 layers in all, repeats written out, got 1e+12");
  CHECK(error_of([] { return repeat(1'000'000'000'000'000, {}); }) == "no error");
  const auto nested = [](int levels) {
    Layer layer = dense();
    for (int i = 1; i < levels; ++i) layer = sum({{1, {layer}}});
    return layer;
  };
  CHECK(error_of([&] { return nested(60); }) == "no error");
  CHECK(error_of([&] { return nested(100'000); }) ==
        "sum: expected at most 60 layers within one another, got 61");
  // The same layer twice, again and again: 2^40 layers in a few hundred bytes.
  CHECK(error_of([] {
          Layer layer = dense();
          for (int i = 0; i < 40; ++i) layer = sum({{1, {layer}}, {1, {layer}}});
          return layer;
        }).starts_with("sum: expected at most 100000 layers in all"));
}

TEST_CASE("activations") {
  CHECK(error_of([] { return hermite((Index{1} << 32) + 2); }) ==
        "hermite: degree must be within 0 .. 64, got 2147483647");
  CHECK(error_of([] { return hermite(-1); }) == "hermite: degree must not be negative, got -1");
  CHECK(error_of([] { return monomial(-1); }) == "monomial: degree must not be negative, got -1");
  CHECK(error_of([] { return rectified_monomial(33); }) ==
        "rectified_monomial: degree must be within 0 .. 32, got 33");
  CHECK(error_of([] { return ab_relu(nan, 1); }) != "no error");
  CHECK(error_of([] { return layers::erf(1, infinity); }) == "erf: b must be a finite number, got inf");
  CHECK(error_of([] { return exp_normalized(-1, 0); }) ==
        "exp_normalized: gamma must be finite and not negative, got -1");
  CHECK(error_of([] { return exp_normalized(1, nan); }) == "exp_normalized: shift must be finite, got nan");
  CHECK(error_of([] { return activation_of(exp_normalized()); }) ==
        "expected a nonlinearity such as relu, got the layer exp_normalized");
  CHECK(error_of([] { return leaky_relu(nan); }) != "no error");
  CHECK(error_of([] { return rbf(0); }) != "no error");
  CHECK(error_of([] { return polynomial({}); }) != "no error");
  CHECK(error_of([] { return nonlinearity("mine", nullptr); }) ==
        "mine: expected an activation, got a null pointer");
  CHECK(error_of([] { return activation_of(dense()); }) ==
        "expected a nonlinearity such as relu, got the layer dense");
  CHECK(activation_of(relu())->value(-2) == 0);
}

TEST_CASE("stages of a user's own") {
  CHECK(error_of([] { return pair_layer("mine", nullptr); }) == "mine: expected a stage, got a null pointer");
  CHECK(error_of([] { return row_layer("mine", nullptr); }) == "mine: expected a stage, got a null pointer");
}

/// They would be taken for the library's.
TEST_CASE("layers of a user's own cannot be called like the library's") {
  const auto activation = numerics::tanh();
  for (const std::string kind : {"identity", "relu", "dense", "flatten", "attention", "repeat", "softplus",
                                 "softmax", "softmax1", "Relu", " relu"}) {
    CAPTURE(kind);
    const std::string refused =
        kind + ": this kind is a layer of the library; choose another name for your own";
    CHECK(error_of([&] { return nonlinearity(kind, activation); }) == refused);
    CHECK(error_of([&] { return pair_layer(kind, nullptr); }) == refused);
    CHECK(error_of([&] { return row_layer(kind, nullptr); }) == refused);
  }
  for (const std::string& kind : layer_kinds())
    if (kind.find("test") == std::string::npos)
      CHECK(error_of([&] { return nonlinearity(kind, activation); }) != "no error");
  CHECK(error_of([&] { return nonlinearity("", activation); }) ==
        "a layer of your own needs a kind, got an empty name");
  const LayerReader reader = [](FieldReader&) { return relu(); };
  for (const char* kind : {"softmax", "Dense", "", " "})
    CHECK_THROWS_AS(register_layer_kind(kind, reader), ArgumentError);
  CHECK(error_of([&] { return nonlinearity("mine", activation, 5); }) ==
        "mine: parameters must be a JSON object, got 5");
  CHECK(error_of([&] {
          return nonlinearity("mine", activation, nlohmann::ordered_json{{"layer", "relu"}});
        }) == "mine: parameters must not have a member \"layer\", which names the kind");
}

AttentionOptions with(const PositionalEncodings& positions) {
  AttentionOptions options;
  options.positions = positions;
  return options;
}

std::string attention_error(const AttentionOptions& options) {
  return error_of([&] { return attention(options); });
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
