// Encodings between inputs of different shapes, which either input takes alone.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/error_message.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/gram_gradient.hpp"
#include "widelimit/kernel/gram_tiles.hpp"
#include "widelimit/kernel/gram_vjp.hpp"
#include "widelimit/kernel/position_covariances.hpp"
#include "widelimit/kernel/prepared_inputs.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::testing {
namespace {

using namespace layers;

template <typename Scalar>
Inputs<Scalar> batch_of(const std::vector<Shape>& shapes) {
  std::vector<xt::xarray<Scalar>> arrays;
  for (const Shape& shape : shapes) {
    std::vector<Index> dimensions(shape.begin(), shape.end());
    dimensions.push_back(2);
    arrays.emplace_back(
        xt::cast<Scalar>(random_inputs(3 + static_cast<unsigned>(arrays.size()), dimensions)));
  }
  return Inputs<Scalar>(std::move(arrays));
}

/// Every sort of attention that reads encodings between the positions of two inputs.
std::vector<AttentionOptions> reading_encodings() {
  std::vector<AttentionOptions> sorts;
  for (const AttentionWeights& weights : {AttentionWeights::softmax(), AttentionWeights::elementwise(relu()),
                                          AttentionWeights::elementwise(identity())}) {
    sorts.push_back({.scaling = AttentionScaling::inverse_width, .weights = weights});
    sorts.push_back({.scaling = AttentionScaling::inverse_sqrt_width, .weights = weights, .samples = 16});
  }
  sorts.push_back({.scaling = AttentionScaling::inverse_width, .query_key_weights = QueryKeyWeights::untied});
  sorts.push_back(
      {.scaling = AttentionScaling::inverse_sqrt_width, .weights = AttentionWeights::elementwise(erf())});
  return sorts;
}

Layer with_positions(AttentionOptions options, PositionCovariance covariance) {
  options.positions = PositionalEncodings::added(std::move(covariance));
  options.positions->values = ValueEncodings::present;
  return attention(options);
}

DecayPositions decay_to(Index largest) {
  return DecayPositions::of([](double distance) { return std::exp(-0.3 * distance); }, largest);
}

/// As it is executed, and as it is pulled back into a readout of the inputs or of positions.
std::vector<Network> networks_with(const Layer& layer) {
  return {Network({layer, relu(), global_average_pool()}), Network({layer, global_average_pool(), dense()}),
          Network({dense(), relu(), layer, dense(), global_average_pool()})};
}

std::string without_path(const std::string& error) {
  const std::size_t place = error.find("expected");
  return place == std::string::npos ? error : error.substr(place);
}

const char* const too_short =
    "expected 51 values of positions' decay between inputs of 1x6 and 6x1, got 26 (input 0 of x and input 1 "
    "of x)";

TEST_CASE("decaying encodings must reach from one input to another") {
  for (const AttentionOptions& options : reading_encodings())
    for (const Network& network : networks_with(with_positions(options, decay_to(25)))) {
      const auto error = [&](const auto& compute) {
        return without_path(error_message<NetworkError>(compute));
      };
      CHECK(error([&] { return gram(network, batch_of<double>({{1, 6}, {6, 1}})); }) == too_short);
      CHECK(error([&] { return gram(network, batch_of<float>({{1, 6}, {6, 1}})); }) == too_short);
      CHECK(error([&] {
              return gram(network, batch_of<double>({{1, 6}}), batch_of<double>({{1, 2}, {6, 1}}));
            }) ==
            "expected 51 values of positions' decay between inputs of 1x6 and 6x1, got 26 (input 0 of x1 and "
            "input 1 "
            "of x2)");
      // Each with itself, and with images that it holds.
      CHECK(error([&] { return gram_diagonal(network, batch_of<double>({{1, 6}, {6, 1}})); }) == "no error");
      CHECK(error([&] {
              return gram(network, batch_of<double>({{1, 6}}), batch_of<double>({{1, 2}, {1, 6}}));
            }) == "no error");
    }
}

TEST_CASE("decaying encodings that reach are read between images of different shapes") {
  const auto x = batch_of<double>({{1, 6}, {6, 1}, {3, 2}});
  for (const AttentionOptions& options : reading_encodings()) {
    const auto near = networks_with(with_positions(options, decay_to(50))),
               far = networks_with(with_positions(options, decay_to(200)));
    for (std::size_t k = 0; k < near.size(); ++k) {
      const auto result = gram(near[k], x);
      CHECK(result.nngp.allFinite());
      CHECK(result.nngp == gram(far[k], x).nngp);
    }
  }
}

TEST_CASE("all that computes kernels checks the encodings of pairs") {
  const AttentionOptions options{.scaling = AttentionScaling::inverse_width,
                                 .weights = AttentionWeights::elementwise(identity())};
  const Network network({with_positions(options, decay_to(25)), global_average_pool(), dense()});
  const auto x = batch_of<double>({{1, 6}, {6, 1}}), wide = batch_of<double>({{1, 6}}),
             high = batch_of<double>({{6, 1}});
  const KernelCotangents<double> weights{.nngp = Matrix<double>::Ones(2, 2)},
      one{.nngp = Matrix<double>::Ones(1, 1)}, column{.nngp = Matrix<double>::Ones(2, 1)};
  const auto is_found = [](const auto& compute) {
    return error_message<NetworkError>(compute).find("expected 51 values") != std::string::npos;
  };
  const std::string number = "layers[2].weight_variance";
  CHECK(is_found([&] { return gram_vjp(network, x, weights); }));
  CHECK(is_found([&] { return gram_vjp(network, wide, high, one).x1; }));
  CHECK(is_found([&] { return gram_number_vjp(network, x, weights, {number}); }));
  CHECK(is_found([&] { return gram_number_vjp(network, wide, high, one, {number}); }));
  CHECK(is_found([&] { return gram_jvp(network, x, {{number, 1.0}}); }));
  CHECK(is_found([&] { return GramTiles<double>(network, x).rows(); }));
  CHECK(is_found([&] { return GramTiles<double>(network, wide, high).rows(); }));
  CHECK(is_found([&] { return PreparedInputs<double>(network, x).gram(); }));
  CHECK(is_found([&] { return PreparedInputs<double>(network, wide).gram_with(high); }));
  CHECK(is_found([&] { return position_covariances(network, x, 0, 1).nngp; }));
  CHECK(gram_diagonal_vjp(network, x, column).size() > 0);
  CHECK(PreparedInputs<double>(network, wide).gram_with(wide).nngp.allFinite());
}

TEST_CASE("encodings of two shapes must have a positive semidefinite covariance together") {
  // Of two neighbours 1, .7; around a corner 1, .7, -.9.
  const DecayPositions positions{{1, 0.7, -0.9}, 1};
  const Network indefinite({with_positions({.weights = AttentionWeights::elementwise(identity())}, positions),
                            global_average_pool()});
  CHECK(error_message<NetworkError>([&] {
          return gram_diagonal(indefinite, batch_of<double>({{1, 2}, {2, 1}}));
        }) == "no error");
  CHECK(without_path(error_message<NetworkError>([&] {
          return gram(indefinite, batch_of<double>({{1, 2}, {2, 1}}));
        })) ==
        "expected positions' decay between inputs of 1x2 and 2x1 with a positive semidefinite covariance "
        "(input 0 of x "
        "and input 1 of x)");
}

TEST_CASE("a positions' matrix numbers the positions of images of one shape") {
  const Layer layer = with_positions({.weights = AttentionWeights::elementwise(identity())},
                                     MatrixPositions{Matrix<double>::Identity(6, 6)});
  const Network network({layer, global_average_pool()});
  CHECK(without_path(error_message<NetworkError>([&] {
          return gram(network, batch_of<double>({{2, 3}, {3, 2}}));
        })) ==
        "expected images of one shape for a positions' matrix, got 2x3 and 3x2 (input 0 of x and input 1 of "
        "x)");
  CHECK(gram(network, batch_of<double>({{6}, {4}})).nngp.allFinite());
}

// Weights are made of one input each.
TEST_CASE("encodings that no pair reads are not checked between two inputs") {
  AttentionOptions options{.scaling = AttentionScaling::inverse_width};
  options.positions = PositionalEncodings::added(decay_to(25));
  CHECK(gram(Network({attention(options), global_average_pool()}), batch_of<double>({{1, 6}, {6, 1}}))
            .nngp.allFinite());
}

}  // namespace
}  // namespace widelimit::testing
