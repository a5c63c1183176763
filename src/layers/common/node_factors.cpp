#include "layers/common/node_factors.hpp"

#include <fmt/format.h>

#include <cmath>

#include "widelimit/error.hpp"

namespace widelimit::layers {
namespace {

/// The degrees of all nodes. Throws ArgumentError for those that are not positive, unless nothing comes to the node.
std::vector<double> degrees_of(const InputGraph& graph, bool self_loops) {
  std::vector<double> degrees;
  for (Index node = 0; node < graph.nodes(); ++node) {
    double degree = self_loops ? 1 : 0;
    bool is_isolated = !self_loops;
    for (const InputGraph::Incoming& edge : graph.incoming(node)) {
      degree += edge.weight;
      is_isolated = is_isolated && edge.weight == 0;
    }
    if (!is_isolated && !(degree > 0 && std::isfinite(degree)))
      throw ArgumentError(
          fmt::format("expected a positive degree (sum of the weights of edges to a node), since degrees "
                      "divide, got {} at node {}",
                      degree, node));
    degrees.push_back(degree);
  }
  return degrees;
}

void require_undirected(const InputGraph& graph) {
  if (const auto edge = graph.one_way_edge())
    throw ArgumentError(fmt::format(
        "expected an undirected graph for symmetric normalisation, got an edge {} -> {} of weight {} and one "
        "back of weight {}",
        edge->source, edge->target, edge->weight, graph.weight(edge->target, edge->source)));
}

}  // namespace

NodeFactors node_factors(const InputGraph& graph, const AggregateOptions& options) {
  const std::vector<double> ones(static_cast<std::size_t>(graph.nodes()), 1.0);
  if (options.normalise == GraphNormalisation::none) return {ones, ones};
  if (options.normalise == GraphNormalisation::symmetric) require_undirected(graph);
  std::vector<double> factors = degrees_of(graph, options.self_loops);
  const bool mean = options.normalise == GraphNormalisation::mean;
  // A node to which nothing comes gets 0, whatever it would be divided by.
  for (double& factor : factors) factor = factor == 0 ? 0 : 1 / (mean ? factor : std::sqrt(factor));
  return {factors, mean ? ones : factors};
}

const InputGraph& require_graph(const InputGraph* graph, Index positions) {
  if (graph == nullptr)
    throw ArgumentError(
        "expected inputs that carry a graph each, got inputs without; see Inputs(inputs, graphs)");
  if (graph->nodes() != positions)
    throw ArgumentError(
        fmt::format("expected the {} nodes of the input's graph, got {} positions; aggregate before "
                    "layers that change the positions",
                    graph->nodes(), positions));
  return *graph;
}

}  // namespace widelimit::layers
