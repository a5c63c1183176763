// Aggregation is linear and treats all channels alike, so a network with one is compared with the same network on
// inputs that plain matrix products have aggregated.
#include "widelimit/layers/graphs.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "layers/graph_batch.hpp"
#include "support/error_message.hpp"
#include "support/graph_errors.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/finite/finite_network.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/layers/positions.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

Matrix<double> aggregation(const Matrix<double>& adjacency, const AggregateOptions& options) {
  Matrix<double> p = adjacency.transpose();
  if (options.self_loops) p.diagonal().array() += 1;
  const Vector<double> degrees = p.rowwise().sum();
  const Vector<double> roots = degrees.cwiseSqrt().cwiseInverse();
  if (options.normalise == GraphNormalisation::none) return p;
  if (options.normalise == GraphNormalisation::mean) return degrees.cwiseInverse().asDiagonal() * p;
  return roots.asDiagonal() * p * roots.asDiagonal();
}

std::vector<Matrix<double>> aggregated(const GraphBatch& batch, const AggregateOptions& options) {
  std::vector<Matrix<double>> features;
  for (std::size_t i = 0; i < batch.features.size(); ++i)
    features.push_back(aggregation(batch.adjacency[i], options) * batch.features[i]);
  return features;
}

/// Cycles without features, whose nodes are all alike.
template <typename Scalar>
Inputs<Scalar> bare_cycles(const std::vector<Index>& sizes) {
  std::vector<Matrix<Scalar>> features;
  std::vector<InputGraph> graphs;
  for (const Index nodes : sizes) {
    std::vector<GraphEdge> edges;
    for (Index node = 0; node < nodes; ++node) {
      edges.push_back({node, (node + 1) % nodes, 0.3});
      edges.push_back({(node + 1) % nodes, node, 0.3});
    }
    features.push_back(Matrix<Scalar>::Constant(nodes, 1, static_cast<Scalar>(0.7)));
    graphs.emplace_back(nodes, edges);
  }
  return {Inputs<Scalar>(std::move(features)), std::move(graphs)};
}

template <typename Scalar>
void check_near(const Matrix<Scalar>& found, const Matrix<double>& expected, double tolerance) {
  CAPTURE(found);
  CAPTURE(expected);
  CHECK((found.template cast<double>() - expected).norm() <= tolerance * expected.norm());
}

void check_aggregation(const AggregateOptions& options, Direction direction) {
  const GraphBatch left = random_graphs(1, {5, 8, 1, 8, 2}, direction),
                   right = random_graphs(50, {8, 3}, direction);
  const Layers rest{dense({1.4, 0.2}), relu(), global_sum_pool(), dense()};
  for (const Layers& front : {Layers{}, Layers{dense({1.7, 0})}}) {
    Layers with = front, without = front;
    with.push_back(aggregate(options));
    with.insert(with.end(), rest.begin(), rest.end());
    without.insert(without.end(), rest.begin(), rest.end());
    const Inputs<double> x = left.inputs(), y = right.inputs(), px = aggregated(left, options),
                         py = aggregated(right, options);
    const auto found = gram(Network(with), x, y), expected = gram(Network(without), px, py);
    check_near(found.nngp, expected.nngp, 1e-13);
    check_near(found.ntk, expected.ntk, 1e-13);
    const auto own = gram(Network(with), x), expected_own = gram(Network(without), px);
    check_near(own.nngp, expected_own.nngp, 1e-13);
    check_near(own.ntk, expected_own.ntk, 1e-13);
    const auto diagonal = gram_diagonal(Network(with), x);
    CHECK(diagonal.ntk == Matrix<double>(own.ntk.diagonal()));
  }
}

TEST_CASE("aggregation of inputs that carry a graph each") {
  for (const bool self_loops : {false, true}) {
    check_aggregation({GraphNormalisation::none, self_loops}, Direction::directed);
    check_aggregation({GraphNormalisation::mean, self_loops}, Direction::directed);
    check_aggregation({GraphNormalisation::symmetric, self_loops}, Direction::undirected);
  }
}

// PyTorch Geometric's convention, for means as for GCNConv: what would be divided by 0 is 0.
TEST_CASE("aggregation: a node to which no edge leads gets 0") {
  const Index nodes = 5, alone = 2;
  for (const GraphNormalisation normalise :
       {GraphNormalisation::none, GraphNormalisation::mean, GraphNormalisation::symmetric}) {
    GraphBatch batch = random_graphs(11, {nodes, nodes}, Direction::undirected), others = batch;
    for (GraphBatch* each : {&batch, &others})
      for (Matrix<double>& adjacency : each->adjacency) {
        adjacency.row(alone).setZero();
        adjacency.col(alone).setZero();
      }
    // By plain products, of which the node's row is 0.
    for (std::size_t i = 0; i < 2; ++i) {
      const Matrix<double>& a = batch.adjacency[i];
      Vector<double> degrees = a.colwise().sum().transpose();
      degrees(alone) = 1;
      const Vector<double> roots = degrees.cwiseSqrt().cwiseInverse();
      const Matrix<double> p = normalise == GraphNormalisation::none ? Matrix<double>(a.transpose())
                               : normalise == GraphNormalisation::mean
                                   ? Matrix<double>(degrees.cwiseInverse().asDiagonal() * a.transpose())
                                   : Matrix<double>(roots.asDiagonal() * a.transpose() * roots.asDiagonal());
      others.features[i] = p * batch.features[i];
      CHECK(others.features[i].row(alone).isZero());
    }
    const Layers rest{dense({1.7, 0}), relu(), global_average_pool(), dense({1, 0.1})};
    Layers with{aggregate({.normalise = normalise})};
    with.insert(with.end(), rest.begin(), rest.end());
    const auto found = gram(Network(with), batch.inputs());
    const auto expected = gram(Network(rest), Inputs<double>(others.features));
    check_near(found.nngp, expected.nngp, 1e-13);
    check_near(found.ntk, expected.ntk, 1e-13);
    CHECK(found.ntk.allFinite());
    // Twice, and on finite networks, whose numbers are finite as well.
    with.insert(with.begin() + 2, aggregate({.normalise = normalise}));
    CHECK(gram(Network(with), batch.inputs()).ntk.allFinite());
    const finite::FiniteNetwork<double> sampled(Network(with), {{nodes}, 3}, {.hidden = 8}, {}, 1, 1);
    CHECK(sampled.forward(batch.inputs()).allFinite());
  }
}

TEST_CASE("aggregation along one and the same graph is a map of positions") {
  const Matrix<double> adjacency = random_graphs(7, {6}, Direction::directed).adjacency[0];
  const auto x = random_inputs(3, {4, 6, 3});
  const Layers front{dense(), relu()}, back{dense(), relu(), flatten(), dense()};
  Layers with = front, without = front;
  with.push_back(aggregate());
  without.push_back(positions_map(Matrix<double>(adjacency.transpose())));
  with.insert(with.end(), back.begin(), back.end());
  without.insert(without.end(), back.begin(), back.end());
  const std::vector<InputGraph> graphs(4, InputGraph::from_adjacency(adjacency));
  const auto found = gram(Network(with), Inputs<double>(x, graphs)),
             expected = gram<double>(Network(without), x);
  check_near(found.nngp, expected.nngp, 1e-13);
  check_near(found.ntk, expected.ntk, 1e-13);
  // A copy of an input has no more to do with it than another one; in float, too.
  const xt::xarray<float> x_float = x;
  const auto in_float = gram(Network(with), Inputs<float>(x_float, graphs));
  check_near(in_float.ntk, found.ntk, 1e-5);
}

TEST_CASE("aggregation: nodes that are all alike are perfectly correlated, in float too") {
  Layers layers;
  for (int block = 0; block < 3; ++block)
    for (const Layer& layer :
         {aggregate({.normalise = GraphNormalisation::none, .self_loops = true}), dense({2, 0}), relu()})
      layers.push_back(layer);
  layers.insert(layers.end(), {global_average_pool(), dense()});
  const Network network("cycles", layers);
  // A block multiplies K by the square of 1 + 2 * 0.3 and leaves it; T becomes T + K, times the same.
  const double input = 0.7 * 0.7, output = input * std::pow(1.6, 6);
  const auto in_double = gram(network, bare_cycles<double>({3, 5, 8}));
  const auto in_float = gram(network, bare_cycles<float>({3, 5, 8}));
  const Matrix<double> ones = Matrix<double>::Ones(3, 3);
  check_near(in_double.nngp, output * ones, 1e-14);
  check_near(in_double.ntk, 4 * output * ones, 3e-8);
  check_near(in_float.ntk, 4 * output * ones, 2e-7);
}

TEST_CASE("aggregation: numbers of neural-tangents 0.6.5, whose pattern is our [source, target]") {
  const std::vector<double> x1{
      0.6187232643615235,   -0.9441072532934807,  -0.6589142329860285,  -1.0689944290590077,
      0.6872209566575739,   -0.7297390437819351,  0.21605244244993457,  0.1691367480584429,
      -1.201639156991029,   1.045557055384967,    0.9320094021560646,   -1.8357533038966183,
      0.4088897883546186,   1.4508051178874695,   1.4289418555302693,   1.45759597664193,
      -0.22659072305559413, -0.02443007292895993, 1.7919625649476671,   -1.5024243860530704,
      1.1615158979596993,   -1.4123221116445979,  1.4131818250734103,   -0.8763690428553662,
      -1.0792143814189117,  0.27296467418087833,  -0.8978122011178911,  0.7797428554271134,
      -0.48115991801881164, 0.740203462847162,    -0.23639328783759678, -0.37613301354541834,
      0.3260333767098848,   0.15901722252075,     0.26083559692754854,  -0.879445962287237,
      -0.9550478711273035,  -1.1657093604771425,  -1.5497032866234781,  0.5955222489078187,
      -1.0816452369081158,  0.33310363442248997,  0.6865701585179806,   0.37346520313187415,
      0.6365410679901513};
  const std::vector<double> x2{
      -0.12073331926939629, -2.2776955018330174,  2.046586533533506,    -0.3843791481942351,
      1.0244458450641976,   -0.8249641158526173,  -0.09525441368372661, 1.1477115625224752,
      1.7225558147036388,   -0.9334298939480257,  0.6673936155936394,   0.8418978219517078,
      0.8730872347642468,   -1.038955726392139,   1.294933320710382,    0.7246336894409036,
      0.08694742049004078,  0.2654153365325567,   0.9407575318693769,   1.050607679679668,
      0.9475492614730895,   0.7873008862593326,   2.672359110529255,    -0.9140532591428905,
      -0.7023974895575289,  -0.14842348198991767, 0.34982016360206797,  -0.9325060600587312,
      0.4478768534091673,   0.30658905485193494};
  const std::vector<double> pattern1{
      0.338, 0.092, 0.738, 0.681, 1.09,  1.017, 0.153, 0.775, 1.943, 0.29,  0.873, 0.111, 0.147,
      0.599, 0.356, 1.234, 1.59,  0.63,  0.306, 0.1,   1.952, 0.288, 0.34,  0.696, 0.507, 0.658,
      1.713, 0.526, 2.222, 0.886, 1.096, 0.475, 0.479, 0.733, 0.701, 0.465, 0.476, 1.243, 0.604,
      1.578, 0.508, 1.85,  0.094, 1.524, 0.513, 0.674, 0.678, 1.36,  1.377, 1.543, 1.825, 1.959,
      0.423, 1.047, 1.029, 0.176, 0.48,  0.746, 0.039, 0.514, 0.401, 0.42,  0.441, 1.101, 0.203,
      0.069, 0.934, 1.097, 0.258, 0.708, 0.528, 0.352, 0.84,  0.634, 0.058};
  const std::vector<double> pattern2{0.592, 2.924, 0.12,  1.191, 1.368, 0.664, 0.987, 0.118, 0.413, 0.602,
                                     0.174, 0.624, 0.392, 0.47,  0.058, 0.115, 0.601, 0.639, 0.565, 0.245,
                                     1.182, 0.529, 0.11,  0.166, 0.057, 0.767, 0.176, 1.591, 0.568, 0.198,
                                     1.663, 1.238, 0.063, 0.266, 1.564, 2.385, 0.054, 0.156, 0.772, 1.462,
                                     0.718, 0.219, 1.56,  0.401, 2.166, 0.418, 0.499, 0.391, 0.008, 1.174};
  const Matrix<double> nngp{{38.891029135819565, 64.49267942301552},
                            {96.75074972092011, 111.90914586991784},
                            {32.766209597908286, 32.74366955143587}};
  const Matrix<double> ntk{{61.277377345813655, 136.2192377335478},
                           {197.89537231156385, 216.4287235063507},
                           {67.6438182437274, 58.02389016060499}};
  constexpr double first_weights = 1.043 * 1.043, first_biases = 0.383 * 0.383,
                   second_weights = 1.628 * 1.628, second_biases = 0.348 * 0.348;
  const Network network("graphs", {dense({first_weights, first_biases}), relu(), aggregate(),
                                   dense({second_weights, second_biases}), relu(), aggregate(),
                                   global_average_pool(), dense()});
  const auto batch = [](const std::vector<double>& x, const std::vector<double>& pattern, Index n) {
    std::vector<InputGraph> graphs;
    for (Index i = 0; i < n; ++i)
      graphs.push_back(
          InputGraph::from_adjacency(Eigen::Map<const Matrix<double>>(pattern.data() + 25 * i, 5, 5)));
    return Inputs<double>(Inputs<double>(x.data(), {n, 5, 3}), std::move(graphs));
  };
  const auto found = gram(network, batch(x1, pattern1, 3), batch(x2, pattern2, 2));
  check_near(found.nngp, nngp, 1e-14);
  check_near(found.ntk, ntk, 1e-14);
}

TEST_CASE("graphs: batches whose graphs do not fit") {
  const auto x = random_inputs(1, {2, 3, 2}), vectors = random_inputs(1, {2, 3});
  const InputGraph three(3, {}), four(4, {});
  const auto make = [](const Inputs<double>& inputs, std::vector<InputGraph> graphs) {
    return error_message<Error>([&] { return Inputs<double>(inputs, graphs); });
  };
  check_graph_error(make(x, {three}), {"2 graphs", "got 1"});
  check_graph_error(make(x, {three, four}), {"input 1", "3 positions", "4 nodes"});
  check_graph_error(make(vectors, {three, three}), {"inputs with positions", "got vectors"});
  const Inputs<double> with(x, {three, three});
  const Index lengths[] = {1, 2};
  check_graph_error(error_message<Error>([&] { return Inputs<double>(with, lengths); }),
                    {"lengths before graphs"});
}

Network graph_network(const Layer& layer, Layers front = {dense(), relu()}) {
  front.insert(front.end(), {layer, dense(), relu(), global_sum_pool(), dense()});
  return Network("graphs", front);
}

TEST_CASE("graphs: positions of images are nodes in the order of their axes") {
  xt::xarray<double> images = random_inputs(1, {2, 2, 3, 2});
  const GraphEdge edges[] = {{0, 1, 1}, {3, 2, 0.5}, {4, 0, 2}, {5, 5, 1}};
  const InputGraph graph(6, edges);
  const Inputs<double> of_images(images, {graph, graph});
  images.reshape({2, 6, 2});
  const Inputs<double> of_sequences(images, {graph, graph});
  const Network network = graph_network(aggregate());
  check_near(gram(network, of_images).ntk, gram(network, of_sequences).ntk, 1e-14);
}

TEST_CASE("aggregation: graphs that it cannot take name layer and input") {
  const auto x = random_inputs(1, {2, 3, 2}), images = random_inputs(1, {2, 3, 3, 2});
  const InputGraph path(3, std::vector<GraphEdge>{{0, 1}, {1, 0}}),
      ring(3, std::vector<GraphEdge>{{0, 1}, {1, 2}, {2, 0}}),
      cancelling(3, std::vector<GraphEdge>{{0, 1}, {2, 1, -1}, {1, 2}, {1, 0}});
  const Layer sum = aggregate(), mean = aggregate({.normalise = GraphNormalisation::mean}),
              symmetric = aggregate({.normalise = GraphNormalisation::symmetric});
  const auto error_of = [&](const Layer& layer, std::vector<InputGraph> graphs) {
    const Inputs<double> inputs(x, std::move(graphs));
    const std::string message = error_message<Error>([&] { return gram(graph_network(layer), inputs); });
    // What is found for one batch is found for others, too.
    CHECK(error_message<Error>([&] { return gram_diagonal(graph_network(layer), inputs); }) == message);
    const Inputs<double> good(x, {ring, ring});
    if (layer == mean && message != "no error")
      CHECK(error_message<Error>([&] { return gram(graph_network(layer), good, inputs); }).find("of x2") !=
            std::string::npos);
    return message;
  };
  check_graph_error(error_message<Error>([&] { return gram<double>(graph_network(sum), x); }),
                    {"layers[2] (aggregate)", "carry a graph", "input 0 of x"});
  CHECK(error_of(mean, {ring, path}) == "no error");
  check_graph_error(error_of(mean, {ring, cancelling}),
                    {"layers[2] (aggregate)", "positive degree", "got 0 at node 1", "input 1"});
  check_graph_error(error_of(symmetric, {ring, ring}), {"undirected", "2 -> 0", "weight 0", "input 0"});
  CHECK(error_of(sum, {ring, path}) == "no error");
  CHECK(error_of(aggregate({.normalise = GraphNormalisation::mean, .self_loops = true}), {ring, path}) ==
        "no error");
  check_graph_error(error_message<Error>([&] { return gram<double>(graph_network(sum), images); }),
                    {"layers[2] (aggregate)", "carry a graph", "input 0 of x"});
  const Inputs<double> graphs(x, {ring, ring});
  check_graph_error(error_message<Error>([&] {
                      return gram(graph_network(sum, {slice({{1, std::nullopt, 1}})}), graphs);
                    }),
                    {"layers[1] (aggregate)", "3 nodes", "2 positions"});
}

TEST_CASE("aggregation: positions that are no nodes for some inputs only") {
  // Resizing leaves the larger inputs as they are.
  const GraphBatch batch = random_graphs(1, {5, 3}, Direction::directed);
  const Network network = graph_network(aggregate(), {image_resize({.size = {5}})});
  check_graph_error(error_message<Error>([&] { return gram(network, batch.inputs()); }),
                    {"layers[1] (aggregate)", "3 nodes", "5 positions", "input 1 of x"});
}

TEST_CASE("aggregation of finite networks: graphs that it cannot take") {
  const auto x = random_inputs(1, {2, 3, 2});
  const finite::FiniteNetwork<double> network(
      graph_network(aggregate({.normalise = GraphNormalisation::mean})), {{3}, 2}, {.hidden = 4}, {}, 1, 1);
  check_graph_error(error_message<Error>([&] { return network.forward(x); }), {"aggregate", "carry a graph"});
  const InputGraph cancelling(3, std::vector<GraphEdge>{{0, 1, -1}, {1, 0}});
  check_graph_error(error_message<Error>([&] {
                      return network.forward(Inputs<double>(x, {cancelling, cancelling}));
                    }),
                    {"aggregate", "positive degree", "got -1 at node 1"});
}

}  // namespace
}  // namespace widelimit::testing
