// The engine against the naive kernel, on random networks and on cases that once were wrong.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "kernel/backends/reference/naive_check.hpp"
#include "kernel/random_networks.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/graphs.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing {
namespace {

using Arrays = std::vector<xt::xarray<double>>;

/// One input of two channels a shape.
Arrays random_batch(unsigned seed, const std::vector<Shape>& shapes) {
  Arrays batch;
  for (const Shape& shape : shapes) {
    std::vector<Index> dimensions(shape.begin(), shape.end());
    dimensions.push_back(2);
    batch.push_back(random_inputs(seed + 100 * static_cast<unsigned>(batch.size()), dimensions));
  }
  return batch;
}

/// All pairs of two batches of inputs of these shapes, and of one with itself.
void check_network(const Network& network, const std::vector<Shape>& shapes, unsigned seed = 1) {
  std::ostringstream printed;
  printed << network;
  CAPTURE(printed.str());
  const double tolerance = tolerance_for(printed.str());
  const Arrays arrays1 = random_batch(seed, shapes), arrays2 = random_batch(seed + 1000, shapes);
  const Inputs<double> x1 = arrays1, x2 = arrays2;
  const NaiveKernel naive(network);
  check_against(naive, x1, x1, true, gram<double>(network, x1), tolerance);
  check_against(naive, x1, x2, false, gram<double>(network, x1, x2), tolerance);
}

/// A graph an input, directed: a way through all nodes and back, and more edges; in some, one node without any.
std::vector<InputGraph> random_graphs(unsigned seed, const std::vector<Shape>& shapes, bool directed) {
  std::vector<InputGraph> graphs;
  for (const Shape& shape : shapes) {
    const Index nodes = shape[0];
    const auto numbers = random_inputs(seed++, {1, nodes, nodes});
    Matrix<double> adjacency = Eigen::Map<const Matrix<double>>(numbers.data(), nodes, nodes);
    adjacency = (adjacency.array() > 0.6).select(adjacency, 0);
    for (Index node = 0; node < nodes; ++node) adjacency(node, (node + 1) % nodes) = 0.5;
    if (!directed) adjacency = (adjacency + adjacency.transpose()).eval();
    // Now and then a node has no edges at all.
    if (seed % 3 == 0 && nodes > 2) {
      adjacency.row(nodes / 2).setZero();
      adjacency.col(nodes / 2).setZero();
    }
    graphs.push_back(InputGraph::from_adjacency(adjacency));
  }
  return graphs;
}

/// Graphs of as many nodes as random_batch() has positions.
void check_graph_network(unsigned seed, const std::vector<Shape>& shapes) {
  const bool directed = seed % 2 == 0;
  const Network network = random_graph_network(seed, shapes, directed);
  std::ostringstream printed;
  printed << network;
  CAPTURE(printed.str());
  const Arrays arrays1 = random_batch(seed, shapes), arrays2 = random_batch(seed + 1000, shapes);
  const Inputs<double> x1(arrays1, random_graphs(seed + 2000, shapes, directed)),
      x2(arrays2, random_graphs(seed + 3000, shapes, directed));
  const NaiveKernel naive(network);
  const double tolerance = tolerance_for(printed.str());
  check_against(naive, x1, x1, true, gram<double>(network, x1), tolerance);
  check_against(naive, x1, x2, false, gram<double>(network, x1, x2), tolerance);
}

TEST_CASE("random networks on graphs agree with the naive kernel") {
  const std::vector<std::vector<Shape>> nodes{
      {{7}, {7}, {7}}, {{5}, {8}, {6}, {9}}, {{2}, {1}, {12}}, {{20}, {3}}, {{4}, {4}, {9}}};
  for (unsigned seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    check_graph_network(seed, nodes[seed % nodes.size()]);
  }
}

// Such a convolution is of every padding at once.
TEST_CASE("convolutions of one position between aggregations, of any padding") {
  const std::vector<Shape> nodes{{3}, {3}, {6}};
  const Arrays arrays = random_batch(5, nodes);
  const Inputs<double> x(arrays, random_graphs(6, nodes, false));
  for (const Padding padding : {Padding::same, Padding::valid, Padding::circular}) {
    CAPTURE(static_cast<int>(padding));
    const layers::ConvolutionOptions one{
        .filter = {1}, .padding = padding, .weight_variance = 1.3, .bias_variance = 0.2};
    const layers::Branch skip{.scale = 0.7}, body{.layers = {layers::conv(one)}};
    for (const Layer& join :
         {layers::sum({skip, body}), layers::product({skip, body}),
          layers::sum({skip, {.layers = {layers::conv(one), layers::relu(), layers::conv(one)}}}),
          layers::concat({{0.4, {}}, {0.6, {layers::conv(one)}}}), layers::conv(one)})
      for (const Layer& last : {layers::aggregate({}), layers::attention()}) {
        const Network network(
            {layers::aggregate({}), layers::dense(), join, last, layers::global_average_pool()});
        std::ostringstream printed;
        printed << network;
        CAPTURE(printed.str());
        check_against(NaiveKernel(network), x, x, true, gram<double>(network, x), 1e-10);
      }
  }
}

TEST_CASE("a branch between aggregations by hand") {
  Matrix<double> values(3, 1);
  values << 1, 2, 3;
  const Inputs<double> nodes(std::vector<Matrix<double>>{values});
  Matrix<double> path = Matrix<double>::Zero(3, 3);
  path(0, 1) = path(1, 0) = path(1, 2) = path(2, 1) = 1;
  const Inputs<double> x(nodes, {InputGraph::from_adjacency(path)});
  const Layer circular = layers::conv({.filter = {1}, .padding = Padding::circular});
  const Layer sums = layers::aggregate({});
  const Network network({sums, layers::sum({{1, {}}, {1, {circular}}}), sums, layers::global_average_pool()});
  // P x = (2, 4, 2), P P x = (4, 4, 4): twice 16.
  CHECK(gram<double>(network, x).nngp(0, 0) == doctest::Approx(32));
  Matrix<float> numbers(3, 1);
  numbers << 1, 2, 3;
  const Inputs<float> in_float(Inputs<float>(std::vector<Matrix<float>>{numbers}),
                               {InputGraph::from_adjacency(path)});
  CHECK(gram<float>(network, in_float).nngp(0, 0) == doctest::Approx(32));
}

/// Of equal shape, then of different ones, down to a single position.
const std::vector<std::vector<Shape>> batches{
    {{7}, {7}, {7}},
    {{4, 5}, {4, 5}, {4, 5}},
    {{3, 3, 3}, {3, 3, 3}, {3, 3, 3}},
    {{12}, {12}, {12}},
    {{5, 3}, {5, 3}, {5, 3}},
    {{2, 4, 3}, {2, 4, 3}, {2, 4, 3}},
    {{2, 4, 4}, {2, 4, 4}},
    {{1}, {1}},
    {{6, 7}, {6, 7}},
    {{1, 6}, {1, 6}},
    {{9}, {4}, {7}, {6}},
    {{5}, {8}, {6}, {9}},
    {{1}, {2}, {5}},
    {{3}, {11}, {1}},
    {{4, 5}, {5, 4}, {3, 6}},
    {{6, 1}, {1, 4}, {2, 2}},
    {{2, 3, 3}, {3, 2, 4}},
};

void check_random_networks(unsigned first_seed, unsigned count) {
  for (unsigned seed = first_seed; seed < first_seed + count; ++seed) {
    CAPTURE(seed);
    const auto& shapes = batches[seed % batches.size()];
    check_network(random_network(seed, shapes), shapes, seed);
  }
}

TEST_CASE("random networks agree with the naive kernel") { check_random_networks(1, 100); }

Network network_of(const char* layers) {
  return parse_network(std::string(R"({"widelimit": 1, "layers": )") + layers + "}");
}

TEST_CASE("a kept norm or dropout whose result no variance needs") {
  check_network(network_of(R"([
      {"layer": "dense"},
      {"layer": "product", "branches": [{"layers": []}, {"layers": [{"layer": "conv", "filter": [2, 1]}]}]},
      {"layer": "rms_norm"},
      {"layer": "concat", "branches": [
          {"share": 0.25, "layers": [{"layer": "conv", "filter": [1, 1]}]},
          {"share": 0.75, "layers": [{"layer": "conv", "filter": [2, 3], "padding": "circular"}]}]},
      {"layer": "dense"},
      {"layer": "local_conv", "filter": [2, 3], "strides": [2, 1], "padding": "circular"},
      {"layer": "global_average_pool"}, {"layer": "dense"}])"),
                {{5, 3}, {5, 3}});
  check_network(network_of(R"([
      {"layer": "conv", "filter": [1, 1, 2], "strides": [1, 2, 1]},
      {"layer": "dropout", "keep": 0.55},
      {"layer": "concat", "branches": [
          {"share": 0.25, "layers": [{"layer": "conv", "filter": [1, 1, 1]}]},
          {"share": 0.75, "layers": [{"layer": "conv", "filter": [2, 2, 1], "padding": "circular"}]}]},
      {"layer": "dense"}, {"layer": "flatten"}, {"layer": "dense"}])"),
                {{2, 4, 3}, {2, 4, 3}});
}

TEST_CASE("an image of which few offsets along the first axis are demanded") {
  check_network(network_of(R"([
      {"layer": "conv", "filter": [1, 1], "strides": [2, 1], "padding": "circular"}, {"layer": "abs"},
      {"layer": "rms_norm"}, {"layer": "conv", "filter": [2, 2], "strides": [1, 2], "padding": "valid"},
      {"layer": "global_sum_pool"}, {"layer": "dense"}])"),
                {{4, 5}, {4, 5}});
  check_network(network_of(R"([
      {"layer": "sum_pool", "window": [2, 3, 1], "strides": [1, 1, 1], "padding": "valid"},
      {"layer": "conv", "filter": [1, 1, 2], "strides": [1, 1, 2], "padding": "circular"}, {"layer": "dense"},
      {"layer": "sum", "branches": [
          {"layers": []}, {"scale": 0.3, "layers": [{"layer": "erf"}, {"layer": "conv", "filter": [1, 1, 2]}]}]},
      {"layer": "average_pool", "window": [1, 1, 2], "strides": [1, 1, 1], "padding": "same"},
      {"layer": "flatten"}, {"layer": "dense"}])"),
                {{2, 4, 3}, {2, 4, 3}});
}

Layer strided_conv(std::vector<Index> filter, std::vector<Index> strides, Padding padding = Padding::same) {
  return layers::conv({.filter = std::move(filter),
                       .strides = std::move(strides),
                       .padding = padding,
                       .weight_variance = 1.5,
                       .bias_variance = 0.1});
}

// Windows of different size stand at different places of a sequence, by its length: the branches read the
// pair's covariance at different offsets.
TEST_CASE("branches that read one node at different offsets") {
  const Layers wide{strided_conv({3}, {2})}, narrow{strided_conv({1}, {2})};
  const std::vector<Layer> joins{
      layers::sum({{1, wide}, {0.7, narrow}}), layers::product({{1, wide}, {0.7, narrow}}),
      layers::concat({{0.4, wide}, {0.6, narrow}}),
      layers::sum({{1, {wide[0], layers::relu(), strided_conv({3}, {1})}}, {0.7, narrow}})};
  for (const Layer& join : joins) {
    const Layers tail{layers::dense(), layers::relu(), layers::global_average_pool()};
    Layers on_inputs{join}, behind_conv{strided_conv({2}, {1}), join};
    on_inputs.insert(on_inputs.end(), tail.begin(), tail.end());
    behind_conv.insert(behind_conv.end(), tail.begin(), tail.end());
    check_network(Network(on_inputs), {{9}, {4}});
    check_network(Network(behind_conv), {{9}, {4}, {7}, {6}});
  }
  // Two strides in a row: between lengths 5 and 8 the places of the first windows differ twice as much.
  const Layers inner{strided_conv({1}, {2}), strided_conv({3}, {2})},
      outer{strided_conv({3}, {2}), strided_conv({1}, {2})};
  check_network(Network({layers::sum({{1, inner}, {0.7, outer}}), layers::global_average_pool()}),
                {{5}, {8}});
  // Strides that differ on images of one size, whose outputs have one size too.
  const Layers three{strided_conv({1, 1}, {3, 1})}, four{strided_conv({1, 1}, {4, 1})};
  for (const Layer& join :
       {layers::sum({{1, three}, {0.7, four}}), layers::product({{1, three}, {0.7, four}}),
        layers::concat({{0.4, three}, {0.6, four}})}) {
    check_network(Network({join, layers::dense(), layers::global_average_pool()}), {{6, 7}, {6, 7}});
    check_network(Network({strided_conv({2, 3}, {1, 1}), layers::relu(), join, layers::dense(),
                           layers::relu(), layers::global_average_pool()}),
                  {{6, 7}, {6, 7}});
  }
}

TEST_CASE("circular filters that go around a short axis several times") {
  for (const Index size : {2, 3, 5, 6, 9}) {
    CAPTURE(size);
    for (const Index stride : {1, 2, 4}) {
      CAPTURE(stride);
      const Layer conv = strided_conv({size}, {stride}, Padding::circular);
      check_network(Network({conv, layers::relu(), conv, layers::global_average_pool()}),
                    {{1}, {2}, {3}, {5}});
      const Layer local =
          layers::local_conv({.filter = {size}, .strides = {stride}, .padding = Padding::circular});
      check_network(Network({conv, layers::relu(), local, layers::global_average_pool()}), {{1}, {2}, {4}});
    }
  }
  const Layer wide = strided_conv({7, 4}, {1, 3}, Padding::circular);
  check_network(Network({wide, layers::relu(), wide, layers::global_sum_pool()}), {{1, 2}, {3, 1}, {2, 2}});
}

// The windows of the two sequences begin at places of their own: what is right for the one is not for the
// other.
TEST_CASE("windows with a stride between sequences of different length") {
  const std::vector<Shape> lengths{{5}, {6}, {7}, {8}, {9}};
  for (const Index size : {1, 2, 3, 4, 5})
    for (const Padding padding : {Padding::same, Padding::valid, Padding::circular}) {
      CAPTURE(size);
      const Layer conv = strided_conv({size}, {2}, padding);
      const Layer local = layers::local_conv({.filter = {size}, .strides = {2}, .padding = padding});
      check_network(Network({conv, layers::relu(), layers::global_average_pool()}), lengths);
      check_network(Network({strided_conv({3}, {1}), layers::relu(), local, layers::global_average_pool()}),
                    lengths);
      if (padding == Padding::circular) continue;
      const Layer pool = layers::average_pool({.window = {size}, .strides = {2}, .padding = padding});
      check_network(Network({conv, layers::relu(), pool, layers::dense(), layers::relu(),
                             layers::global_average_pool()}),
                    padding == Padding::same ? lengths : std::vector<Shape>{{13}, {15}, {18}});
    }
}

// A position is its place along every axis, not its number in a row of all.
TEST_CASE("identity encodings between images of different size") {
  layers::AttentionOptions options;
  options.positions = layers::PositionalEncodings{.covariance = layers::IdentityPositions{.rho = 0.8},
                                                  .input_weight = 0.6,
                                                  .position_weight = 0.4,
                                                  .values = layers::ValueEncodings::present};
  const Layer attention = layers::attention(options);
  check_network(Network({strided_conv({3, 3}, {1, 1}), layers::relu(), attention, layers::relu(),
                         layers::global_average_pool()}),
                {{2, 3}, {3, 2}, {4, 5}});
}

Layers two_convolutions() {
  const Layer conv = layers::conv({.filter = {3, 3}, .weight_variance = 1.5, .bias_variance = 0.1});
  const Layer strided = layers::conv({.filter = {3, 3}, .strides = {2, 1}, .weight_variance = 1.5});
  return {conv, layers::relu(), strided, layers::relu()};
}

// Planes of complementary offsets share one, before strides too; the gaps between them grow with these.
TEST_CASE("strided branches of an image agree with the naive kernel") {
  const auto conv = [](Index size, Index stride) {
    return layers::conv(
        {.filter = {size, size}, .strides = {stride, stride}, .weight_variance = 1.5, .bias_variance = 0.1});
  };
  for (const Index size : {2, 3, 5}) {
    CAPTURE(size);
    const layers::Branch body{.layers = {conv(size, 2), layers::relu(), conv(3, 1)}};
    const layers::Branch shortcut{.layers = {conv(1, 2)}};
    const Network network({conv(3, 1), layers::relu(), layers::sum({body, shortcut}), layers::relu(),
                           layers::global_average_pool()});
    check_network(network, {{6, 8}});
    check_network(network, {{7, 5}});
  }
  // Farther strides, in two steps or in one, keep them apart.
  check_network(
      Network({conv(3, 2), layers::relu(), conv(3, 2), layers::relu(), layers::global_average_pool()}),
      {{8, 8}});
  for (const Index stride : {3, 4})
    check_network(
        Network({conv(3, 1), layers::relu(), conv(4, stride), layers::relu(), layers::global_average_pool()}),
        {{12, 12}});
}

TEST_CASE("volumes of which strides leave a single slab") {
  for (const Shape& volume : {Shape{2, 2, 2}, Shape{2, 4, 4}, Shape{2, 8, 8}, Shape{2, 5, 3}, Shape{2, 3, 3},
                              Shape{2, 4, 1}, Shape{1, 4, 4}, Shape{3, 4, 4}})
    for (const std::vector<Index>& strides : {std::vector<Index>{2, 1, 1}, {2, 2, 2}, {2, 1, 2}, {3, 1, 2}}) {
      CAPTURE(to_string(volume));
      CAPTURE(to_string(strides));
      for (const std::vector<Index>& filter : {std::vector<Index>{1, 1, 1}, {3, 3, 2}})
        check_network(Network({layers::conv({.filter = filter, .strides = strides, .bias_variance = 0.1}),
                               layers::relu(), layers::global_average_pool()}),
                      {volume, volume});
    }
}

// Planes too large to stack are read where the states lie.
TEST_CASE("a flattened image of 26 x 25 agrees with the naive kernel") {
  Layers flattened = two_convolutions();
  flattened.push_back(layers::flatten());
  check_network(Network(flattened), {{26, 25}});
}

// The matrix of an image of more than 512 positions is put together from planes.
TEST_CASE("attention on an image of 46 x 12 agrees with the naive kernel [slow]") {
  const Layer conv = layers::conv({.filter = {3, 3}, .weight_variance = 1.5, .bias_variance = 0.1});
  check_network(Network({conv, layers::relu(), layers::attention(), layers::relu(), layers::flatten()}),
                {{46, 12}});
}

TEST_CASE("many random networks agree with the naive kernel [slow]") { check_random_networks(1000, 2000); }

}  // namespace
TEST_CASE("naive: what follows the rows of a plane is no variance") {
  layers::ConvolutionOptions same{.filter = {3, 3}}, padded{.filter = {2, 2}};
  same.bias_variance = padded.bias_variance = 0.01;
  padded.pads = {1, 1};
  const Network network({layers::conv(same), layers::silu(), layers::conv(padded), layers::tanh(),
                         layers::global_average_pool(), layers::dense()});
  for (unsigned seed = 0; seed < 8; ++seed) {
    CAPTURE(seed);
    CHECK_NOTHROW(check_network(network, {{5, 5}}, seed));
  }
}

}  // namespace widelimit::testing
