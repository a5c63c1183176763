// Identities of 1/sqrt(width) attention, and its fast ways against its slow one.
#include <doctest/doctest.h>

#include <Eigen/Eigenvalues>
#include <cmath>

#include "layers/attention_stages.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/custom.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::layers {
namespace {

xt::xarray<double> sequences(Index count, Index length, Index channels, std::uint64_t seed) {
  numerics::RandomStream random(seed);
  xt::xarray<double> x = xt::zeros<double>({count, length, channels});
  for (double& value : x) value = random.normal();
  return x;
}

double largest_deviation(const Matrix<double>& left, const Matrix<double>& right) {
  return (left - right).cwiseAbs().maxCoeff() / right.cwiseAbs().maxCoeff();
}

AttentionOptions sqrt_width(AttentionWeights weights) {
  AttentionOptions options;
  options.scaling = AttentionScaling::inverse_sqrt_width;
  options.weights = std::move(weights);
  options.query_key_std = 1.3;
  options.output_value_variance = 0.9;
  return options;
}

AttentionOptions with_encodings(const Layer& weights, ValueEncodings values) {
  AttentionOptions options = sqrt_width(AttentionWeights::elementwise(weights));
  options.bias_variance = 0.2;
  options.positions = PositionalEncodings{StructuredPositions{0.7, 2}, 0.8, 0.4, values};
  return options;
}

AttentionOptions sqrt_relu(ValueEncodings values) { return with_encodings(relu(), values); }

/// The same attention by interpolation and by the direct sum.
template <typename Scalar>
void check_interpolation(const AttentionOptions& options, const xt::xarray<double>& inputs,
                         const Layers& before, const Layer& readout) {
  // No nonlinearity follows: behind nearly identical inputs it would turn the last bit of a correlation into
  // half of the digits.
  const auto network = [&](std::shared_ptr<const PairStage> stage) {
    Layers layers = before;
    layers.insert(layers.end(), {pair_layer("tested", std::move(stage)), readout, dense()});
    return Network(layers);
  };
  const xt::xarray<Scalar> x = xt::cast<Scalar>(inputs);
  const auto fast = gram<Scalar>(network(make_homogeneous_attention(options)), x);
  const auto direct = gram<Scalar>(network(make_elementwise_attention(options)), x);
  const double tolerance = sizeof(Scalar) == 4 ? 1e-5 : 1e-10;
  CHECK(largest_deviation(fast.nngp.template cast<double>(), direct.nngp.template cast<double>()) <
        tolerance);
  CHECK(largest_deviation(fast.ntk.template cast<double>(), direct.ntk.template cast<double>()) < tolerance);
}

void check_interpolation(const xt::xarray<double>& x, const Layers& before, const Layer& readout,
                         ValueEncodings values) {
  for (const Layer& weights : {relu(), abs(), leaky_relu(0.3)}) {
    const AttentionOptions options = with_encodings(weights, values);
    check_interpolation<double>(options, x, before, readout);
    check_interpolation<float>(options, x, before, readout);
  }
}

TEST_CASE("interpolated homogeneous attention equals the direct sum: random inputs, any demand") {
  for (const Layer& readout : {flatten(), global_average_pool()})
    for (const ValueEncodings values : {ValueEncodings::absent, ValueEncodings::present})
      check_interpolation(sequences(3, 7, 4, 1), {dense()}, readout, values);
}

TEST_CASE("interpolated homogeneous attention equals the direct sum: nearly identical and identical inputs") {
  xt::xarray<double> x = sequences(4, 6, 3, 2);
  numerics::RandomStream random(3);
  for (Index t = 0; t < 6; ++t)
    for (Index c = 0; c < 3; ++c) {
      x(1, t, c) = x(0, t, c) + 1e-5 * random.normal();
      // Any closer, and the rounding of the covariances themselves decides about the angle: 1 - correlation
      // is 1e-13.
      x(2, t, c) = x(0, t, c) * (1 + 3e-7 * random.normal());
      x(3, t, c) = x(0, t, c);
    }
  check_interpolation(x, {dense()}, global_average_pool(), ValueEncodings::absent);
}

TEST_CASE("interpolated homogeneous attention equals the direct sum: after 16 ReLU layers") {
  const Layers deep = {repeat(16, {dense({.weight_variance = 2, .bias_variance = 0.1}), relu()})};
  check_interpolation(sequences(3, 6, 4, 4), deep, global_average_pool(), ValueEncodings::absent);
}

TEST_CASE("interpolated attention in float agrees with double") {
  const auto x = sequences(3, 8, 4, 5);
  const xt::xarray<float> x_float = xt::cast<float>(x);
  const Network network({dense(), attention(sqrt_relu(ValueEncodings::absent)), global_average_pool()});
  const auto in_double = gram<double>(network, x);
  const auto in_float = gram<float>(network, x_float);
  CHECK(largest_deviation(in_float.nngp.cast<double>(), in_double.nngp) < 1e-5);
  CHECK(largest_deviation(in_float.ntk.cast<double>(), in_double.ntk) < 1e-5);
}

TEST_CASE("the identity weights agree with the dual activation of the identity") {
  const auto x = sequences(3, 5, 4, 6);
  for (const AttentionMask mask : {AttentionMask::full, AttentionMask::causal}) {
    AttentionOptions options = sqrt_width(AttentionWeights::elementwise(identity()));
    options.mask = mask;
    options.positions = PositionalEncodings{IdentityPositions{0.5}, 0.9, 0.6, ValueEncodings::present};
    const auto closed = gram<double>(
        Network({dense(), pair_layer("closed", make_identity_attention(options)), global_average_pool()}), x);
    const auto sums = gram<double>(
        Network({dense(), pair_layer("sums", make_elementwise_attention(options)), global_average_pool()}),
        x);
    CHECK(largest_deviation(closed.nngp, sums.nngp) < 1e-13);
    CHECK(largest_deviation(closed.ntk, sums.ntk) < 1e-13);
  }
}

TEST_CASE(
    "identity attention without encodings followed by layer norm is layer norm alone, on a single input") {
  const auto x = sequences(1, 6, 5, 7);
  const Layer norm = layer_norm();
  const auto with =
      gram<double>(Network({dense(), attention(sqrt_width(AttentionWeights::elementwise(identity()))), norm,
                            global_average_pool()}),
                   x);
  const auto without = gram<double>(Network({dense(), norm, global_average_pool()}), x);
  CHECK(with.nngp(0, 0) == doctest::Approx(without.nngp(0, 0)).epsilon(1e-12));
}

TEST_CASE("permuting the positions of all inputs changes nothing without encodings") {
  const auto x = sequences(3, 6, 4, 8);
  const Index order[] = {3, 0, 5, 1, 4, 2};
  xt::xarray<double> permuted = x;
  for (Index n = 0; n < 3; ++n)
    for (Index t = 0; t < 6; ++t)
      for (Index c = 0; c < 4; ++c) permuted(n, t, c) = x(n, order[t], c);
  const Network network({dense(), attention(sqrt_width(AttentionWeights::elementwise(abs()))), flatten()});
  CHECK(largest_deviation(gram<double>(network, permuted).ntk, gram<double>(network, x).ntk) < 1e-12);
}

TEST_CASE("24 transformer blocks stay finite and positive semidefinite") {
  const auto x = sequences(6, 5, 8, 9);
  AttentionOptions options = sqrt_relu(ValueEncodings::absent);
  for (const AttentionScaling scaling :
       {AttentionScaling::inverse_width, AttentionScaling::inverse_sqrt_width}) {
    options.scaling = scaling;
    const Layers attend = {layer_norm(), attention(options)};
    const Layers feed = {layer_norm(), dense({.weight_variance = 2}), relu(), dense()};
    const Network network({dense(), repeat(24, {sum({{1, {}}, {0.5, attend}}), sum({{1, {}}, {0.5, feed}})}),
                           layer_norm(), global_average_pool()});
    const auto result = gram<double>(network, x);
    for (const Matrix<double>& kernel : {result.nngp, result.ntk}) {
      const Eigen::SelfAdjointEigenSolver<Matrix<double>> solver(kernel);
      CHECK(solver.eigenvalues()[0] > -1e-12 * solver.eigenvalues()[5]);
    }
  }
}

TEST_CASE("logits beyond exp's range give a weight of one, not NaN") {
  const auto x = sequences(2, 4, 3, 10);
  AttentionOptions options;
  options.query_key_std = 1e6;
  const auto result = gram<double>(Network({dense(), attention(options), flatten()}), x);
  CHECK(result.nngp.allFinite());
  options.scaling = AttentionScaling::inverse_sqrt_width;
  options.samples = 32;
  CHECK(gram<double>(Network({dense(), attention(options), flatten()}), x).ntk.allFinite());
}

TEST_CASE("black images: attention of zero covariance gives zero") {
  xt::xarray<double> x = sequences(2, 4, 3, 11);
  for (Index t = 0; t < 4; ++t)
    for (Index c = 0; c < 3; ++c) x(1, t, c) = 0;
  for (const AttentionWeights& weights :
       {AttentionWeights::elementwise(relu()), AttentionWeights::elementwise(erf())}) {
    const auto result = gram<double>(Network({attention(sqrt_width(weights)), flatten()}), x);
    CHECK(result.nngp(0, 0) > 0);
    CHECK(result.nngp(0, 1) == 0);
    CHECK(result.ntk(1, 1) == 0);
  }
}

TEST_CASE("the standard error of sampled softmax is that of its scatter over seeds") {
  const auto x = sequences(2, 2, 3, 12);
  AttentionOptions options = sqrt_width(AttentionWeights::softmax());
  options.samples = 64;
  const int seeds = 200;
  double sum = 0, squares = 0, errors = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    options.seed = static_cast<std::uint64_t>(seed);
    const auto result = gram<double>(Network({attention(options), flatten()}), x);
    sum += result.ntk(0, 1);
    squares += result.ntk(0, 1) * result.ntk(0, 1);
    errors += result.ntk_error(0, 1) * result.ntk_error(0, 1);
  }
  const double variance = (squares - sum * sum / seeds) / (seeds - 1);
  // The scatter of a variance estimate from 200 values is 10 %, that of a deviation 5 %: three of them.
  CHECK(std::sqrt(errors / seeds / variance) == doctest::Approx(1).epsilon(0.15));
}

}  // namespace
}  // namespace widelimit::layers
