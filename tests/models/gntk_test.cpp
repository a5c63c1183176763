// The recursion of Du et al. 2019 (arXiv:1905.13192), section 3, in plain loops over pairs of nodes, against
// models::gntk.
#include "widelimit/models/gntk.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/finite/check_limit.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/models/named_networks.hpp"

namespace widelimit::testing {
namespace {

using layers::GraphNormalisation;
using models::GntkOptions;
using models::NodeReadout;

struct FeatureGraph {
  Matrix<double> features;                     ///< [nodes, channels]
  std::vector<std::vector<Index>> neighbours;  ///< Of every node, without itself.

  [[nodiscard]] Index nodes() const { return features.rows(); }
};

/// Nodes along a path, and edges by chance.
FeatureGraph random_feature_graph(unsigned seed, Index nodes) {
  const auto x = random_inputs(seed, {1, nodes, 4}), chances = random_inputs(seed + 1, {1, nodes, nodes});
  FeatureGraph graph{Eigen::Map<const Matrix<double>>(x.data(), nodes, 4),
                     std::vector<std::vector<Index>>(static_cast<std::size_t>(nodes))};
  for (Index a = 0; a < nodes; ++a)
    for (Index b = 0; b < a; ++b)
      if (b + 1 == a || chances(0, a, b) > 0.8) {
        graph.neighbours[static_cast<std::size_t>(a)].push_back(b);
        graph.neighbours[static_cast<std::size_t>(b)].push_back(a);
      }
  return graph;
}

Inputs<double> inputs_of(const std::vector<FeatureGraph>& graphs) {
  std::vector<Matrix<double>> features;
  std::vector<InputGraph> carried;
  for (const FeatureGraph& graph : graphs) {
    std::vector<GraphEdge> edges;
    for (Index a = 0; a < graph.nodes(); ++a)
      for (const Index b : graph.neighbours[static_cast<std::size_t>(a)]) edges.push_back({b, a});
    features.push_back(graph.features);
    carried.emplace_back(graph.nodes(), edges);
  }
  return {Inputs<double>(std::move(features)), std::move(carried)};
}

/// The paper's Theta between graphs G and G', and the covariances of each with itself: c_u c_u' sums over
/// neighbourhoods, then ReLU layers with c_sigma = 2.
class PaperRecursion {
 public:
  PaperRecursion(const FeatureGraph& left, const FeatureGraph& right, bool mean)
      : left_{left}, right_{right}, mean_{mean} {
    cross_ = left.features * right.features.transpose();
    of_left_ = left.features * left.features.transpose();
    of_right_ = right.features * right.features.transpose();
    theta_ = cross_;
  }

  void aggregate() {
    cross_ = sums(cross_, left_, right_);
    theta_ = sums(theta_, left_, right_);
    of_left_ = sums(of_left_, left_, left_);
    of_right_ = sums(of_right_, right_, right_);
  }

  void relu_layer() {
    const Vector<double> left = of_left_.diagonal(), right = of_right_.diagonal();
    for (Index u = 0; u < cross_.rows(); ++u)
      for (Index v = 0; v < cross_.cols(); ++v)
        theta_(u, v) = theta_(u, v) * derivative(cross_(u, v), left[u], right[v]) +
                       value(cross_(u, v), left[u], right[v]);
    cross_ = mapped(cross_, left, right);
    of_left_ = mapped(of_left_, left, left);
    of_right_ = mapped(of_right_, right, right);
  }

  [[nodiscard]] double theta() const { return theta_.sum(); }

 private:
  static double angle(double k, double p, double q) {
    return std::acos(std::clamp(k / std::sqrt(p * q), -1.0, 1.0));
  }
  static double value(double k, double p, double q) {
    const double t = angle(k, p, q);
    return std::sqrt(p * q) / std::numbers::pi * (std::sin(t) + (std::numbers::pi - t) * std::cos(t));
  }
  static double derivative(double k, double p, double q) { return 1 - angle(k, p, q) / std::numbers::pi; }

  static Matrix<double> mapped(Matrix<double> k, const Vector<double>& p, const Vector<double>& q) {
    for (Index u = 0; u < k.rows(); ++u)
      for (Index v = 0; v < k.cols(); ++v) k(u, v) = value(k(u, v), p[u], q[v]);
    return k;
  }

  static std::vector<Index> around(const FeatureGraph& graph, Index node) {
    std::vector<Index> nodes = graph.neighbours[static_cast<std::size_t>(node)];
    nodes.push_back(node);
    return nodes;
  }

  [[nodiscard]] Matrix<double> sums(const Matrix<double>& k, const FeatureGraph& left,
                                    const FeatureGraph& right) const {
    Matrix<double> result = Matrix<double>::Zero(k.rows(), k.cols());
    for (Index u = 0; u < k.rows(); ++u)
      for (Index v = 0; v < k.cols(); ++v) {
        const auto of_u = around(left, u), of_v = around(right, v);
        for (const Index a : of_u)
          for (const Index b : of_v) result(u, v) += k(a, b);
        if (mean_) result(u, v) /= static_cast<double>(of_u.size()) * static_cast<double>(of_v.size());
      }
    return result;
  }

  const FeatureGraph& left_;
  const FeatureGraph& right_;
  bool mean_;
  Matrix<double> cross_, of_left_, of_right_, theta_;
};

double paper_kernel(const FeatureGraph& left, const FeatureGraph& right, const GntkOptions& options) {
  PaperRecursion recursion(left, right, options.aggregation.normalise == GraphNormalisation::mean);
  double jumping = recursion.theta();
  for (Index block = 0; block < options.blocks; ++block) {
    recursion.aggregate();
    for (Index layer = 0; layer < options.mlp_layers; ++layer) recursion.relu_layer();
    jumping += recursion.theta();
  }
  return options.jumping_knowledge ? jumping : recursion.theta();
}

TEST_CASE("gntk: the paper's recursion on graphs of unequal size") {
  std::vector<FeatureGraph> left, right;
  for (const Index nodes : {5, 9, 1, 9})
    left.push_back(random_feature_graph(10 + static_cast<unsigned>(left.size()), nodes));
  for (const Index nodes : {7, 2})
    right.push_back(random_feature_graph(20 + static_cast<unsigned>(right.size()), nodes));
  for (const bool jumping : {false, true})
    for (const GraphNormalisation normalise : {GraphNormalisation::none, GraphNormalisation::mean})
      for (const Index blocks : {0, 1, 3})
        for (const Index mlp_layers : {1, 2}) {
          const GntkOptions options{.blocks = blocks,
                                    .mlp_layers = mlp_layers,
                                    .aggregation = {.normalise = normalise, .self_loops = true},
                                    .jumping_knowledge = jumping};
          CAPTURE(blocks);
          CAPTURE(mlp_layers);
          const auto ntk =
              gram(Network("gntk", models::gntk(options)), inputs_of(left), inputs_of(right)).ntk;
          for (std::size_t i = 0; i < left.size(); ++i)
            for (std::size_t j = 0; j < right.size(); ++j) {
              const double expected = paper_kernel(left[i], right[j], options) / 4;  // Channels.
              CHECK(ntk(static_cast<Index>(i), static_cast<Index>(j)) ==
                    doctest::Approx(expected).epsilon(1e-12).scale(0));
            }
        }
}

TEST_CASE("gntk: the mean over nodes instead of their sum") {
  const std::vector<FeatureGraph> graphs{random_feature_graph(1, 5), random_feature_graph(2, 8)};
  const auto sum = gram(Network("sum", models::gntk()), inputs_of(graphs)).ntk;
  const auto mean =
      gram(Network("mean", models::gntk({.readout = NodeReadout::mean})), inputs_of(graphs)).ntk;
  CHECK(mean(0, 1) == doctest::Approx(sum(0, 1) / 40).epsilon(1e-13).scale(0));
  CHECK(mean(1, 1) == doctest::Approx(sum(1, 1) / 64).epsilon(1e-13).scale(0));
}

TEST_CASE("gntk: sampled finite networks approach it") {
  finite::LimitOptions options;
  options.widths = {32, 64, 128};
  options.draws = 32;
  options.shapes = {{5}};
  for (const bool jumping : {false, true}) {
    const auto report =
        finite::check_limit(Network("gntk", models::gntk({.jumping_knowledge = jumping})), options);
    INFO(to_string(report));
    CHECK(report.passed());
  }
}

TEST_CASE("gntk: numbers of blocks and layers out of range") {
  CHECK_THROWS_WITH_AS(static_cast<void>(models::gntk({.blocks = 26})),
                       "gntk: blocks must be in 0..25, got 26", ArgumentError);
  CHECK_THROWS_WITH_AS(static_cast<void>(models::gntk({.blocks = -1})),
                       "gntk: blocks must be in 0..25, got -1", ArgumentError);
  CHECK_NOTHROW(static_cast<void>(models::gntk({.blocks = 26, .jumping_knowledge = false})));
  CHECK_THROWS_WITH_AS(static_cast<void>(models::gntk({.mlp_layers = 0})),
                       "gntk: mlp_layers must be in 1..1000, got 0", ArgumentError);
}

TEST_CASE("gntk: the named network is the model") {
  const auto named = models::named_network(
      "gntk", {{"blocks", 3}, {"mlp_layers", 2}, {"normalise", 1}, {"jumping_knowledge", 0}});
  const Network model(
      "gntk", models::gntk({.blocks = 3,
                            .mlp_layers = 2,
                            .aggregation = {.normalise = GraphNormalisation::mean, .self_loops = true},
                            .jumping_knowledge = false}));
  CHECK(named == model);
}

}  // namespace
}  // namespace widelimit::testing
