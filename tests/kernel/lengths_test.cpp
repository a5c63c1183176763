// Sequences of different length.
#include <doctest/doctest.h>

#include <limits>

#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::testing {
namespace {

using namespace layers;

const std::vector<Index> lengths{5, 2, 7, 5, 3, 7, 1};
constexpr Index longest = 7;
constexpr Index channels = 3;

Layer structured_attention() {
  AttentionOptions options;
  options.positions = PositionalEncodings{.covariance = StructuredPositions{.rho = 1, .phi = 1.5}};
  return attention(options);
}

Layer causal_attention() {
  AttentionOptions options;
  options.mask = AttentionMask::causal;
  return attention(options);
}

Layer inverse_root_attention() {
  AttentionOptions options;
  options.scaling = AttentionScaling::inverse_sqrt_width;
  options.weights = AttentionWeights::elementwise(relu());
  return attention(options);
}

/// Every way to mix positions.
std::vector<Network> networks() {
  return {
      {"convolutions",
       {conv({.filter = {3}}), relu(), conv({.filter = {3}, .strides = {2}}), relu(), global_average_pool(),
        dense()}},
      {"pool",
       {conv({.filter = {2}}), relu(), average_pool({.window = {2}, .padding = Padding::same}),
        global_sum_pool()}},
      {"structured", {conv({.filter = {3}}), relu(), structured_attention(), relu(), global_average_pool()}},
      {"causal", {causal_attention(), layer_norm(), global_average_pool(), dense(), relu(), dense()}},
      {"inverse root", {dense(), inverse_root_attention(), layer_norm(), global_average_pool()}},
      {"features", {global_average_pool(), dense(), relu(), dense()}},
  };
}

/// The true part of every sequence, as arrays of their own.
template <typename Scalar>
std::vector<xt::xarray<Scalar>> cut(const xt::xarray<Scalar>& padded) {
  std::vector<xt::xarray<Scalar>> sequences;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    auto sequence = xt::xarray<Scalar>::from_shape({static_cast<std::size_t>(lengths[i]), channels});
    for (std::size_t a = 0; a < sequence.shape(0); ++a)
      for (std::size_t c = 0; c < channels; ++c) sequence(a, c) = padded(i, a, c);
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

/// The same sequences after one another with other rubbish after them.
template <typename Scalar>
xt::xarray<Scalar> padded_to(const xt::xarray<Scalar>& padded, std::size_t length) {
  auto result = xt::xarray<Scalar>::from_shape({lengths.size(), length, channels});
  result.fill(std::numeric_limits<Scalar>::quiet_NaN());
  for (std::size_t i = 0; i < lengths.size(); ++i)
    for (std::size_t a = 0; a < static_cast<std::size_t>(lengths[i]); ++a)
      for (std::size_t c = 0; c < channels; ++c) result(i, a, c) = padded(i, a, c);
  return result;
}

template <typename Scalar>
xt::xarray<Scalar> sequences(unsigned seed) {
  return random_inputs<Scalar>(seed, {static_cast<Index>(lengths.size()), longest, channels});
}

/// A batch of the one sequence.
template <typename Scalar>
std::vector<xt::xarray<Scalar>> alone(const xt::xarray<Scalar>& sequence) {
  return {sequence};
}

TEST_CASE_TEMPLATE("padding to any length, or none, gives the same bits", Scalar, float, double) {
  const auto x = sequences<Scalar>(1), y = sequences<Scalar>(2);
  const auto x_cut = cut(x), y_cut = cut(y);
  const auto x_longer = padded_to(x, 12), y_longer = padded_to(y, 9);
  for (const Network& network : networks()) {
    CAPTURE(network.name());
    const auto one = gram<Scalar>(network, x, lengths);
    const auto two = gram<Scalar>(network, x, lengths, y, lengths);
    CHECK(one.nngp == gram<Scalar>(network, x_longer, lengths).nngp);
    CHECK(one.ntk == gram<Scalar>(network, x_cut).ntk);
    CHECK(one.ntk.diagonal() == gram_diagonal<Scalar>(network, x_cut).ntk.col(0));
    CHECK(two.nngp == gram<Scalar>(network, x_cut, y_cut).nngp);
    CHECK(two.ntk == gram<Scalar>(network, x_longer, lengths, y_longer, lengths).ntk);
  }
}

TEST_CASE_TEMPLATE("a sequence gives what it gives alone, bit for bit", Scalar, float, double) {
  const auto x = cut(sequences<Scalar>(3)), y = cut(sequences<Scalar>(4));
  for (const Network& network : networks()) {
    CAPTURE(network.name());
    const auto batch = gram<Scalar>(network, x, y);
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t j = 0; j < y.size(); ++j) {
        const auto pair = gram<Scalar>(network, alone(x[i]), alone(y[j]));
        const auto row = static_cast<Index>(i), column = static_cast<Index>(j);
        CHECK(batch.nngp(row, column) == pair.nngp(0, 0));
        CHECK(batch.ntk(row, column) == pair.ntk(0, 0));
      }
  }
}

TEST_CASE("one batch is symmetric and agrees with the batch against itself") {
  const auto x = cut(sequences<double>(5));
  for (const Network& network : networks()) {
    CAPTURE(network.name());
    const auto one = gram<double>(network, x);
    const auto two = gram<double>(network, x, x);
    CHECK(one.nngp == one.nngp.transpose());
    CHECK(one.ntk == one.ntk.transpose());
    CHECK((one.nngp - two.nngp).norm() <= 1e-14 * two.nngp.norm());
    // Off the diagonal only: the batch against itself does not know that an input meets itself.
    Matrix<double> difference = one.ntk - two.ntk;
    difference.diagonal().setZero();
    CHECK(difference.norm() <= 1e-13 * two.ntk.norm());
  }
}

TEST_CASE("results do not depend on blocks, tiles and threads") {
  const auto x = cut(sequences<double>(6));
  GramOptions small;
  small.threads = 3;
  small.tile_size = 2;
  small.state_memory_bytes = 1;  // one tile side a block
  for (const Network& network : networks()) {
    CAPTURE(network.name());
    const auto expected = gram<double>(network, x), blocks = gram<double>(network, x, small);
    CHECK(expected.nngp == blocks.nngp);
    CHECK(expected.ntk == blocks.ntk);
  }
}

TEST_CASE("a matrix of encodings gives its leading block to shorter sequences") {
  const Matrix<double> root = Matrix<double>::Random(longest, longest);
  const Matrix<double> covariance = root * root.transpose();
  const auto with_matrix = [](const Matrix<double>& matrix) {
    AttentionOptions options;
    options.positions = PositionalEncodings{.covariance = MatrixPositions{matrix, 1}};
    return Network{"encoded", {attention(options), global_average_pool()}};
  };
  const auto x = cut(sequences<double>(7));
  const auto batch = gram<double>(with_matrix(covariance), x);
  const Matrix<double> block = covariance.topLeftCorner(5, 5);
  CHECK(batch.nngp(0, 0) == doctest::Approx(gram<double>(with_matrix(block), alone(x[0])).nngp(0, 0)));
  CHECK_THROWS_WITH_AS(static_cast<void>(gram<double>(with_matrix(block), x)),
                       doctest::Contains("expected a positions' matrix of 7 x 7"), NetworkError);
}

TEST_CASE("lengths that do not fit are refused") {
  const auto x = sequences<double>(8);
  CHECK_THROWS_WITH_AS(static_cast<void>(Inputs<double>(x, lengths).shape()),
                       "inputs: expected a batch of one shape, got a ragged one", ArgumentError);
  const Network gap{"gap", {conv({.filter = {3}, .padding = Padding::valid}), global_average_pool()}};
  const auto with = [&](std::vector<Index> given) { return Inputs<double>(x, given); };
  CHECK_THROWS_WITH_AS(with({1, 2}), "inputs: expected 7 lengths, one an input, got 2", ArgumentError);
  CHECK_THROWS_WITH_AS(with({5, 2, 8, 5, 3, 7, 1}), "inputs: lengths[2] must be in 1..7, got 8",
                       ArgumentError);
  CHECK_THROWS_WITH_AS(with({5, 2, 7, 5, 0, 7, 1}), "inputs: lengths[4] must be in 1..7, got 0",
                       ArgumentError);
  const auto images = random_inputs<double>(9, {7, 2, 2, 1});
  CHECK_THROWS_WITH_AS(Inputs<double>(images, lengths), doctest::Contains("got 2 spatial axes"),
                       ArgumentError);
  const xt::xarray<double> other = random_inputs<double>(10, {4, 2}),
                           image = random_inputs<double>(11, {4, 2, 3});
  CHECK_THROWS_WITH_AS(Inputs<double>(std::vector<xt::xarray<double>>{cut(x)[0], other}),
                       "inputs: input 1: expected 3 channels like input 0, got 2", ArgumentError);
  CHECK_THROWS_WITH_AS(Inputs<double>(std::vector<xt::xarray<double>>{cut(x)[0], image}),
                       "inputs: input 1: expected 1 spatial axes like input 0, got 2", ArgumentError);
  CHECK_THROWS_WITH_AS(
      Inputs<double>(std::vector<xt::xarray<double>>{}),
      "inputs: expected at least one input in a list, got none: an array of no inputs says their shape",
      ArgumentError);
  // A valid convolution of three leaves nothing of sequences of one and two.
  CHECK_THROWS_WITH_AS(static_cast<void>(gram<double>(gap, x, lengths)),
                       doctest::Contains("input 6 of x (1): layers[0] (conv)"), NetworkError);
}

TEST_CASE("flatten takes sequences of one length only") {
  const auto x = sequences<double>(12);
  const std::vector<Index> equal(lengths.size(), 4);
  for (const Network& network :
       {Network{"raw", {flatten(), dense()}}, Network{"conv", {dense(), relu(), flatten()}}}) {
    CAPTURE(network.name());
    CHECK(gram<double>(network, x, equal).nngp.allFinite());
    CHECK_THROWS_WITH_AS(static_cast<void>(gram<double>(network, x, lengths)),
                         doctest::Contains("use global_average_pool for inputs of different size"),
                         NetworkError);
  }
}

TEST_CASE("flatten refuses images of as many positions that lie differently") {
  const Network network({conv({.filter = {2, 2}}), relu(), flatten()});
  const std::vector<xt::xarray<double>> images{random_inputs(1, {2, 6, 3}), random_inputs(2, {3, 4, 3})};
  CHECK_THROWS_WITH_AS(
      static_cast<void>(gram<double>(network, images)),
      doctest::Contains("layers[2] (flatten): expected inputs of equal size, got 2x6 positions "
                        "for input 0 of x and 3x4 for input 1 of x"),
      NetworkError);
}

}  // namespace
}  // namespace widelimit::testing
