// Options of layers that make another layer of them in a special case: parametrisations, axes, biases, positions.
#include <doctest/doctest.h>

#include <cmath>
#include <ctime>
#include <string>

#include "layers/common/attention_positions.hpp"
#include "support/error_message.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/layers/positions.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

GramResult<double> kernels_of(const Layers& layers, const xt::xarray<double>& x) {
  return gram<double>(Network(layers), x);
}

void check_same(const Layers& left, const Layers& right, const xt::xarray<double>& x) {
  const auto found = kernels_of(left, x), expected = kernels_of(right, x);
  CHECK((found.nngp - expected.nngp).norm() <= 1e-13 * expected.nngp.norm());
  CHECK((found.ntk - expected.ntk).norm() <= 1e-13 * expected.ntk.norm());
}

/// Before `layer` and after it.
Layers around(const Layer& layer) {
  return {conv({{3, 3}, {}, Padding::same, 1.7, 0.1}), relu(), layer, relu(), global_average_pool()};
}

TEST_CASE("with N/s |F| = sigma_w^2 and biases of variance 1 the parametrisations agree") {
  const auto x = random_inputs(3, {4, 3, 5, 2});
  const StandardParametrisation one{.input_width = 2, .width_scale = 2},
      sixth{.input_width = 2, .width_scale = 12};
  check_same(around(dense({1, 1, one})), around(dense({1, 1})), x);
  for (const Padding padding : {Padding::same, Padding::circular}) {
    check_same(around(conv({{2, 3}, {1, 2}, padding, 1, 1, sixth})),
               around(conv({{2, 3}, {1, 2}, padding, 1, 1})), x);
    check_same(around(local_conv({{2, 3}, {1, 2}, padding, 1, 1, sixth})),
               around(local_conv({{2, 3}, {1, 2}, padding, 1, 1})), x);
    check_same(around(conv_transpose({{2, 3}, {1, 2}, padding, 1, 1, sixth})),
               around(conv_transpose({{2, 3}, {1, 2}, padding, 1, 1})), x);
  }
}

TEST_CASE("an input width that is known to be another is refused") {
  const auto refused = [](const Layers& layers, const xt::xarray<double>& x) {
    return error_message<NetworkError>([&] { (void)kernels_of(layers, x); });
  };
  const StandardParametrisation four{4}, three{3}, fifteen{15};
  CHECK(refused({dense({1, 0, four})}, random_inputs(1, {2, 3})) ==
        "layers[0] (dense): expected an input_width of 3, the channels before the layer, got 4");
  CHECK(refused({average_pool({.window = {2}}), conv({.filter = {2}, .standard = four}), flatten()},
                random_inputs(1, {2, 5, 3}))
            .starts_with("layers[1] (conv): expected an input_width of 3"));
  CHECK(refused({flatten(), dense({1, 0, three})}, random_inputs(1, {2, 5, 3}))
            .starts_with("layers[1] (dense): expected an input_width of 15"));
  (void)kernels_of({flatten(), dense({1, 0, fifteen}), relu(), dense({1, 0, four})},
                   random_inputs(1, {2, 5, 3}));
}

TEST_CASE("the NTK of a standard dense layer on inputs is N/s K + 1, also without weights") {
  const auto x = random_inputs(3, {4, 6});
  const Eigen::Map<const Matrix<double>> rows(x.data(), 4, 6);
  const Matrix<double> k = rows * rows.transpose() / 6;
  for (const double w : {0.0, 1.7}) {
    const auto biased = kernels_of({dense({w, 0.4, StandardParametrisation{6}})}, x);
    CHECK((biased.nngp.array() - (w * k.array() + 0.4)).matrix().norm() <= 1e-14);
    CHECK((biased.ntk.array() - (6 * k.array() + 1)).matrix().norm() <= 1e-13);
    const auto unbiased = kernels_of({dense({w, 0, StandardParametrisation{6, 3}})}, x);
    CHECK((unbiased.ntk - 2 * k).norm() <= 1e-13);
    const auto from_zero = kernels_of({dense({w, 0, StandardParametrisation{6, 3, true}})}, x);
    CHECK((from_zero.ntk.array() - (2 * k.array() + 1)).matrix().norm() <= 1e-13);
  }
}

TEST_CASE("norms over all spatial axes are norms over channels and space") {
  const auto x = random_inputs(5, {3, 3, 4, 2});
  const Layer first = conv({{3, 3}, {}, Padding::same, 1.7, 0.1});
  for (const Layers& front : {Layers{}, Layers{first}}) {
    const auto with = [&](const Layer& norm) {
      Layers layers = front;
      layers.insert(layers.end(), {norm, dense({1, 0.2}), relu(), global_average_pool()});
      return layers;
    };
    check_same(with(layer_norm({NormAxes::channels, 0.01, {1, 0}})),
               with(layer_norm({NormAxes::channels_and_space, 0.01})), x);
    check_same(with(rms_norm({NormAxes::channels, 0.01, {0, 1}})),
               with(rms_norm({NormAxes::channels_and_space, 0.01})), x);
  }
}

TEST_CASE("a norm over the columns of an image normalises every row by itself") {
  const auto x = random_inputs(5, {3, 2, 4, 2});
  const Layer norm = layer_norm({NormAxes::channels, 0.01, {1}}),
              whole = layer_norm({NormAxes::channels_and_space, 0.01});
  const Layers front{conv({{1, 3}, {}, Padding::same, 1.7, 0.1})}, rest{relu(), global_average_pool()};
  const auto row = [&](Index i, const Layer& layer, bool before) {
    Layers layers = front;
    const Layer cut = index_position(0, i);
    layers.push_back(before ? layer : cut);
    layers.push_back(before ? cut : layer);
    layers.insert(layers.end(), rest.begin(), rest.end());
    return layers;
  };
  for (const Index i : {0, 1}) check_same(row(i, norm, true), row(i, whole, false), x);
}

TEST_CASE("concatenated positions have the blocks of their branches") {
  const auto x = random_inputs(7, {3, 5, 2});
  const Layer first = slice({{0, 2, 1}}), rest = slice({{2, std::nullopt, 1}}), weights = dense({1.3, 0.2});
  const Layers before{first, weights, relu()};
  const auto average = [&](Layers layers) {
    layers.push_back(global_average_pool());
    return kernels_of(layers, x);
  };
  const auto all = average({concat_positions(0, {before, {rest, weights}})});
  const auto left = average(before), right = average({rest, weights});
  CHECK((all.nngp - (4 * left.nngp + 9 * right.nngp) / 25).norm() <= 1e-14);
  CHECK((all.ntk - (4 * left.ntk + 9 * right.ntk) / 25).norm() <= 1e-14);
}

TEST_CASE("concatenated positions: what does not fit") {
  const auto error = [](const Layers& layers, const xt::xarray<double>& x) -> std::string {
    try {
      static_cast<void>(kernels_of(layers, x));
    } catch (const NetworkError& found) {
      return found.what();
    }
    return "no error";
  };
  const auto images = random_inputs(1, {2, 3, 4, 2});
  CHECK(error({concat_positions(0, {{dense()}, {conv({{1, 1}, {1, 2}})}})}, images) ==
        "layers[0] (concat): expected branches of equal shape except along axis 0, got 2 axes of sizes 3x4 "
        "and 2 "
        "axes of "
        "sizes 3x2");
  CHECK(error({concat_positions(1, {{dense()}, {flatten(), dense()}})}, images) ==
        "layers[0] (concat): expected branches with an axis 1, got no positions");
  CHECK(error({concat_positions(1, {{}, {}}), flatten()}, images)
            .find("layers[0] (concat): expected independent branches, but branches 0 and 1") == 0);
  CHECK(error({layer_norm({NormAxes::channels, 0, {2}}), flatten()}, images) ==
        "layers[0] (layer_norm): expected inputs with an axis 2, got 2 axes of sizes 3x4");
  CHECK(error({dense(), layer_norm({NormAxes::channels, 0, {2}}), flatten()}, images) ==
        "layers[1] (layer_norm): expected inputs with an axis 2, got 2 axes of sizes 3x4");
  const auto sequences = random_inputs(1, {2, 4, 2});
  const std::vector<Index> lengths{4, 3};
  CHECK_THROWS_WITH_AS(static_cast<void>(gram<double>(
                           Network({concat_positions(0, {{dense()}, {dense()}}), global_average_pool()}),
                           Inputs<double>(sequences, lengths))),
                       doctest::Contains("expected inputs of one shape before concatenated positions"),
                       NetworkError);
}

/// Every way to compute attention.
std::vector<AttentionOptions> sorts_of_attention() {
  std::vector<AttentionOptions> sorts(1);
  sorts.back().scaling = AttentionScaling::inverse_width;
  sorts.back().weights = AttentionWeights::elementwise(relu());
  for (const Layer& weights : {identity(), relu(), layers::erf()}) {
    sorts.emplace_back();
    sorts.back().scaling = AttentionScaling::inverse_sqrt_width;
    sorts.back().weights = AttentionWeights::elementwise(weights);
  }
  sorts.emplace_back();
  sorts.back().scaling = AttentionScaling::inverse_sqrt_width;
  sorts.back().samples = 16;
  return sorts;
}

TEST_CASE("equal biases of queries and keys are an encoding that all positions share") {
  const auto x = random_inputs(9, {3, 4, 3});
  for (AttentionOptions biased : sorts_of_attention()) {
    AttentionOptions encoded = biased;
    biased.query_bias_variance = biased.key_bias_variance = 0.7;
    encoded.positions = PositionalEncodings::added(MatrixPositions{Matrix<double>::Ones(4, 4)}, 0.7);
    const auto found = kernels_of({attention(biased), relu(), global_average_pool()}, x),
               expected = kernels_of({attention(encoded), relu(), global_average_pool()}, x);
    // Encodings are trained together, biases of queries and keys apart: only the NNGP is the same.
    CHECK((found.nngp - expected.nngp).norm() <= 1e-11 * expected.nngp.norm());
  }
}

TEST_CASE("decaying positions are the matrix of their values") {
  const auto decay = [](double distance) { return std::exp(-0.3 * distance); };
  Matrix<double> matrix(6, 6);
  for (Index a = 0; a < 6; ++a)
    for (Index b = 0; b < 6; ++b)
      matrix(a, b) = 0.9 * decay(std::pow(a / 3 - b / 3, 2) + std::pow(a % 3 - b % 3, 2));
  const auto x = random_inputs(9, {3, 2, 3, 3});
  for (AttentionOptions options : sorts_of_attention()) {
    DecayPositions positions = DecayPositions::of(decay, 5);
    positions.rho = 0.9;
    options.positions = PositionalEncodings::appended(positions, 4, 2, 1.5);
    CHECK(options.positions->input_weight == doctest::Approx(2.0 / 3));
    CHECK(options.positions->position_weight == doctest::Approx(0.5));
    AttentionOptions other = options;
    other.positions->covariance = MatrixPositions{matrix};
    check_same({attention(options), relu(), global_average_pool()},
               {attention(other), relu(), global_average_pool()}, x);
  }
}

TEST_CASE("decaying positions of any power are the matrix of their values") {
  const auto decay = [](double distance) { return std::exp(-0.3 * distance); };
  const auto x = random_inputs(9, {3, 2, 3, 3});
  for (const double power : {0.5, 1.0, 1.5, 1.7, 2.0}) {
    CAPTURE(power);
    Matrix<double> matrix(6, 6);
    for (Index a = 0; a < 6; ++a)
      for (Index b = 0; b < 6; ++b)
        matrix(a, b) =
            0.9 * decay(std::pow(std::abs(a / 3 - b / 3), power) + std::pow(std::abs(a % 3 - b % 3), power));
    DecayPositions positions = DecayPositions::within(decay, {2, 3}, power);
    positions.rho = 0.9;
    // Axes up to that length, either way, and a rounding of their distances.
    DecayPositions larger = DecayPositions::within(decay, {4, 3}, power);
    larger.rho = 0.9;
    for (double& distance : larger.distances) distance *= 1 + 1e-12;
    for (AttentionOptions options : sorts_of_attention()) {
      AttentionOptions other = options, another = options;
      options.positions = PositionalEncodings::added(positions);
      other.positions = PositionalEncodings::added(larger);
      another.positions = PositionalEncodings::added(MatrixPositions{matrix});
      check_same({attention(options), relu(), global_average_pool()},
                 {attention(other), relu(), global_average_pool()}, x);
      check_same({attention(options), relu(), global_average_pool()},
                 {attention(another), relu(), global_average_pool()}, x);
    }
  }
}

TEST_CASE("positions scaled by row sums are those of that variance divided by the mean row sum") {
  const auto x = random_inputs(9, {3, 2, 3, 3});
  const DecayPositions decay =
      DecayPositions::of([](double distance) { return std::exp(-0.3 * distance); }, 5);
  Matrix<double> matrix(6, 6);
  for (Index a = 0; a < 6; ++a)
    for (Index b = 0; b < 6; ++b)
      matrix(a, b) = std::exp(-0.3 * (std::pow(a / 3 - b / 3, 2) + std::pow(a % 3 - b % 3, 2)));
  const double mean_row_sum = matrix.sum() / 6;
  for (AttentionOptions options : sorts_of_attention()) {
    AttentionOptions other = options;
    DecayPositions relative = decay, absolute = decay;
    relative.rho = 0.9;
    absolute.rho = 0.9 / mean_row_sum;
    options.positions = PositionalEncodings::added(relative);
    options.positions->scale = PositionScale::mean_row_sum;
    other.positions = PositionalEncodings::added(absolute);
    check_same({attention(options), relu(), global_average_pool()},
               {attention(other), relu(), global_average_pool()}, x);
  }
}

TEST_CASE("positions that add up to nothing have no row sums to be scaled by") {
  Matrix<double> centred = Matrix<double>::Identity(4, 4).array() - 0.25;
  AttentionOptions options;
  options.positions = PositionalEncodings::added(MatrixPositions{centred});
  options.positions->scale = PositionScale::mean_row_sum;
  CHECK(error_message<ArgumentError>([&] { check_positions_fit(*options.positions, {4}); })
            .starts_with(
                "expected positions whose covariance has a positive mean row sum for inputs of 4, got "));
  options.positions->scale = PositionScale::variance;
  CHECK_NOTHROW(check_positions_fit(*options.positions, {4}));
}

TEST_CASE("decaying positions must reach as far as inputs, and be positive semidefinite") {
  const auto error = [](const DecayPositions& positions) -> std::string {
    AttentionOptions options;
    options.positions = PositionalEncodings::added(positions);
    try {
      static_cast<void>(kernels_of({attention(options), flatten()}, random_inputs(1, {2, 3, 2, 2})));
    } catch (const NetworkError& found) {
      return found.what();
    }
    return "no error";
  };
  CHECK(error({{1, 0.5, 0.2, 0.1, 0, 0}}) == "no error");
  CHECK(error({{1, 0.5, 0.2, 0.1, 0}}) ==
        "layers[0] (attention): expected 6 values of positions' decay for inputs of 3x2, got 5");
  CHECK(error(DecayPositions::within([](double r) { return std::exp(-r); }, {2, 2}, 1.5)) ==
        "layers[0] (attention): expected a value of positions' decay at the distance 2.82842712475 for "
        "inputs of 3x2, "
        "got none among 3");
  CHECK(error({{1, 1, 0, 0}, 1}) ==
        "layers[0] (attention): expected positions' decay with a positive semidefinite covariance");
  CHECK(error({{0, 0, 0, 0}, 1}) == "no error");
}

TEST_CASE("a decay is factorised once a shape, and what was found for another one does not count") {
  const auto error = [](const DecayPositions& positions, const Shape& shape) {
    return error_message<ArgumentError>(
        [&] { check_positions_fit(PositionalEncodings::added(positions), shape); });
  };
  const std::string refused = "expected positions' decay with a positive semidefinite covariance";
  const DecayPositions near{{1, 0.9, 0, 0}, 1}, nothing{{1, 0.9, 0, 0}, 1, 0};
  for (int again = 0; again < 2; ++again) {
    CHECK(error(nothing, {4}) == "no error");
    CHECK(error(near, {2}) == "no error");
    CHECK(error(near, {3}) == refused);
    CHECK(error(near, {4}) == refused);
  }
  const DecayPositions smooth = DecayPositions::of([](double r) { return std::exp(-r / 500); }, 2 * 23 * 23);
  const auto seconds = [&](int times) {
    const std::clock_t start = std::clock();
    for (int i = 0; i < times; ++i) check_positions_fit(PositionalEncodings::added(smooth), {24, 24});
    return static_cast<double>(std::clock() - start);
  };
  const double first = seconds(1);
  CHECK(seconds(50) < 10 * first);
}

}  // namespace
}  // namespace widelimit::testing
