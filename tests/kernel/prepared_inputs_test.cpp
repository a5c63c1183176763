// Inputs that keep their states: the same bits as gram(), whatever is asked of them and in which order.
#include "widelimit/kernel/prepared_inputs.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/graphs.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/models/named_networks.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

template <typename Scalar>
void check_same(const GramResult<Scalar>& actual, const GramResult<Scalar>& expected) {
  CHECK(actual.nngp == expected.nngp);
  CHECK(actual.ntk == expected.ntk);
  CHECK(actual.nngp_error.size() == expected.nngp_error.size());
  if (expected.nngp_error.size() > 0) CHECK(actual.nngp_error == expected.nngp_error);
}

template <typename Scalar>
Inputs<Scalar> cast_inputs(const xt::xarray<double>& x) {
  xt::xarray<Scalar> values = x;
  return Inputs<Scalar>(std::move(values));
}

/// Sequences of the given lengths with 3 channels.
std::vector<xt::xarray<double>> sequences(unsigned seed, const std::vector<Index>& lengths) {
  std::vector<xt::xarray<double>> batch;
  for (const Index length : lengths) batch.push_back(random_inputs(seed++, {length, 3}));
  return batch;
}

/// In both orders, and twice.
template <typename Scalar>
void check_batches(const Network& network, const std::vector<Index>& shape, const GramOptions& options = {}) {
  const auto batch = [&](unsigned seed, Index count) {
    std::vector<Index> dimensions = shape;
    dimensions.insert(dimensions.begin(), count);
    xt::xarray<double> x = random_inputs(seed, dimensions);
    return cast_inputs<Scalar>(x);
  };
  const auto x = batch(1, 11), one = batch(2, 1), several = batch(3, 5);
  const PreparedInputs<Scalar> prepared(network, x, options);
  check_same(prepared.gram_with(one), gram(network, one, x));
  check_same(prepared.gram(), gram(network, x));
  check_same(prepared.gram_with(several), gram(network, several, x));
  check_same(prepared.gram_with(one), gram(network, one, x));
  const GramOptions nngp{.kernels = Kernels::nngp};
  check_same(prepared.gram_with(several, nngp), gram(network, several, x, nngp));
}

Network sampled_network() {
  AttentionOptions softmax;
  softmax.scaling = AttentionScaling::inverse_sqrt_width;
  softmax.samples = 8;
  softmax.seed = 3;
  return Network(
      {conv({{3}, {}, Padding::same, 1.5, 0.1}), relu(), attention(softmax), global_average_pool(), dense()});
}

TEST_CASE("prepared inputs give the bits of gram(): vectors, images, attention, float and double") {
  const Network vectors({dense({1.5, 0.1}), relu(), dense()});
  const Network images({conv({{3, 3}, {}, Padding::same, 1.5, 0.1}), relu(), average_pool({{2, 2}}), dense(),
                        relu(), global_average_pool(), dense()});
  check_batches<double>(vectors, {7});
  check_batches<float>(vectors, {7});
  check_batches<double>(images, {6, 6, 2});
  check_batches<float>(images, {6, 6, 2});
  check_batches<double>(models::named_network("conv-flatten", {{"axes", 2}}), {5, 5, 2});
  check_batches<double>(models::named_network("struct", {{"axes", 2}}), {5, 5, 2});
  check_batches<float>(models::named_network("imdb-gap", {}), {6, 4});
}

TEST_CASE("prepared inputs of deep networks of vectors keep states in double") {
  Layers layers;
  for (int i = 0; i < 40; ++i) {
    layers.push_back(dense({2, 0.01}));
    layers.push_back(relu());
  }
  layers.push_back(dense());
  check_batches<float>(Network(layers), {5});
}

TEST_CASE("prepared inputs whose states exceed the memory are taken in blocks") {
  const Network images({conv({{3, 3}, {}, Padding::same, 1.5, 0.1}), relu(), global_average_pool(), dense()});
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4096}, std::size_t{20000}})
    check_batches<double>(images, {4, 4, 2}, {.state_memory_bytes = bytes});
}

TEST_CASE("prepared inputs: sequences of new lengths, shorter and longer, in any order") {
  const std::vector<Network> networks{
      Network({conv({{3}, {}, Padding::same, 1.5, 0.1}), relu(), global_average_pool(), dense()}),
      Network({attention(), dense({1.5, 0.1}), relu(), global_average_pool(), dense()}),
      Network({conv({{3}, {2}, Padding::same, 1.5, 0.1}), relu(), conv({{3}, {}, Padding::valid, 1, 0}),
               relu(), global_average_pool(), dense()})};
  const auto x = sequences(1, {6, 9, 6, 7, 12});
  for (const Network& network : networks) {
    const PreparedInputs<double> prepared(network, x);
    for (const std::vector<Index>& lengths :
         {std::vector<Index>{6}, {40}, {8, 13}, {5}, {12, 6}, {400}, {9}}) {
      const auto other = sequences(50 + static_cast<unsigned>(lengths[0]), lengths);
      check_same(prepared.gram_with(other), gram<double>(network, other, x));
    }
    check_same(prepared.gram(), gram<double>(network, Inputs<double>(x)));
  }
}

TEST_CASE("prepared inputs of sampled networks keep the states of every replicate") {
  check_batches<double>(sampled_network(), {5, 3});
}

TEST_CASE("prepared inputs own their numbers and may be shared by threads") {
  const Network network({conv({{3}, {}, Padding::same, 1.5, 0.1}), relu(), global_average_pool(), dense()});
  std::optional<PreparedInputs<double>> prepared;
  GramResult<double> expected;
  const auto other = random_inputs(5, {3, 6, 2});
  {
    const auto x = random_inputs(4, {7, 6, 2});
    prepared.emplace(network, x);
    expected = gram<double>(network, other, x);
  }
  const PreparedInputs<double> copy = *prepared;
  std::vector<GramResult<double>> results(4);
  {
    std::vector<std::jthread> threads;
    for (auto& result : results) threads.emplace_back([&] { result = copy.gram_with(other); });
  }
  for (const auto& result : results) check_same(result, expected);
  CHECK(copy.network() == network);
  CHECK(copy.inputs().size() == 7);
}

TEST_CASE("prepared inputs keep masks, and meet batches with and without them") {
  const Network network(
      {conv({{3}, {}, Padding::same, 2, 0.1}), relu(), attention(), layer_norm(), flatten(), dense()});
  const Network pooled({conv({{3}, {}, Padding::same, 2, 0.1}), relu(), global_average_pool(), dense()});
  const Inputs<double> x = cast_inputs<double>(random_inputs(1, {6, 5, 3})),
                       y = cast_inputs<double>(random_inputs(2, {3, 5, 3}));
  xt::xarray<bool> holes = xt::ones<bool>({6, 5}), others = xt::ones<bool>({3, 5});
  holes(0, 1) = holes(2, 0) = holes(2, 3) = others(1, 4) = false;
  const Inputs<double> masked(x, holes), other(y, others);
  for (const Network& net : {network, pooled}) {
    const PreparedInputs<double> with(net, masked), without(net, x);
    check_same(with.gram(), gram(net, masked));
    check_same(with.gram_with(other), gram(net, other, masked));
    check_same(with.gram_with(y), gram(net, y, masked));
    check_same(without.gram_with(other), gram(net, other, x));
    check_same(without.gram_with(y), gram(net, y, x));
    CHECK(with.gram().nngp != without.gram().nngp);
  }
}

TEST_CASE("prepared inputs keep graphs") {
  const Network network({dense({2, 0.1}), relu(), aggregate({.self_loops = true}), dense(), relu(),
                         global_sum_pool(), dense()});
  const auto graphs_of = [](const std::vector<Index>& nodes) {
    std::vector<InputGraph> graphs;
    for (const Index n : nodes)
      graphs.emplace_back(n, std::vector<GraphEdge>{{0, n - 1, 0.5}, {n - 1, 0, 0.5}});
    return graphs;
  };
  const std::vector<Index> nodes{4, 2, 5}, others{3, 6};
  const Inputs<double> x(Inputs<double>(sequences(1, nodes)), graphs_of(nodes));
  const Inputs<double> y(Inputs<double>(sequences(9, others)), graphs_of(others));
  const PreparedInputs<double> prepared(network, x);
  check_same(prepared.gram(), gram(network, x));
  check_same(prepared.gram_with(y), gram(network, y, x));
  CHECK_THROWS_AS(static_cast<void>(prepared.gram_with(Inputs<double>(sequences(9, others)))), NetworkError);
  CHECK_THROWS_AS(PreparedInputs<double>(network, Inputs<double>(sequences(1, nodes))), NetworkError);
}

TEST_CASE("prepared inputs refuse what gram() refuses, before any work") {
  const Network network({conv({{3}, {}, Padding::same, 1.5, 0.1}), relu(), global_average_pool(), dense()});
  auto x = random_inputs(4, {7, 6, 2});
  const PreparedInputs<double> prepared(network, x);
  CHECK_THROWS_WITH_AS(PreparedInputs<double>(network, random_inputs(1, {4, 3})),
                       doctest::Contains("layers[0]"), NetworkError);
  CHECK_THROWS_WITH_AS((void)prepared.gram_with(random_inputs(1, {2, 6, 3})),
                       doctest::Contains("x1 and x2 must have equal shapes"), ArgumentError);
  x.flat(3) = std::nan("");
  CHECK_THROWS_WITH_AS(PreparedInputs<double>(network, x), doctest::Contains("x must be finite"),
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)prepared.gram_with(x), doctest::Contains("x1 must be finite"), ArgumentError);
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_AS((void)prepared.gram({.stop = stop.get_token()}), Cancelled);
  CHECK_NOTHROW((void)prepared.gram());  // what was stopped is not kept
  const PreparedInputs<double> small(network, xt::xarray<double>(1e-200 * random_inputs(4, {2, 6, 2})));
  CHECK_THROWS_WITH_AS((void)small.gram(), doctest::Contains("input 0 of the kept inputs"), NumericalError);
}

}  // namespace
}  // namespace widelimit::testing
