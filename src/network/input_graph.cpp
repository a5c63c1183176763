#include "widelimit/network/input_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "widelimit/error.hpp"

namespace widelimit {
namespace {

// Aggregation multiplies weights by factors made of sums of weights. Between these bounds such products stay within
// the range of double.
constexpr double least_edge_weight = 1e-100, most_edge_weight = 1e100;

std::string edge_text(const GraphEdge& edge) { return fmt::format("{} -> {}", edge.source, edge.target); }

void check_edge(const GraphEdge& edge, std::size_t number, Index nodes) {
  const auto is_node = [nodes](Index node) { return node >= 0 && node < nodes; };
  if (!is_node(edge.source) || !is_node(edge.target))
    throw ArgumentError(fmt::format("graph: edge {} ({}): expected nodes in 0..{}, got {}", number,
                                    edge_text(edge), nodes - 1,
                                    is_node(edge.source) ? edge.target : edge.source));
  const double size = std::abs(edge.weight);
  if (edge.weight != 0 && !(size >= least_edge_weight && size <= most_edge_weight))
    throw ArgumentError(
        fmt::format("graph: edge {} ({}): expected a weight of 0 or of a size from {:g} to {:g}, whose "
                    "products are numbers, got {}",
                    number, edge_text(edge), least_edge_weight, most_edge_weight, edge.weight));
}

}  // namespace

InputGraph::InputGraph(Index nodes, std::span<const GraphEdge> edges) {
  if (nodes < 1) throw ArgumentError(fmt::format("graph: expected at least one node, got {}", nodes));
  for (std::size_t i = 0; i < edges.size(); ++i) check_edge(edges[i], i, nodes);
  std::vector<GraphEdge> sorted(edges.begin(), edges.end());
  // The edges of a target lie together, by their sources. weight() can then search them by bisection, and sums along
  // edges have one order, however the caller listed them.
  std::sort(sorted.begin(), sorted.end(), [](const GraphEdge& left, const GraphEdge& right) {
    return std::tie(left.target, left.source) < std::tie(right.target, right.source);
  });
  const auto same = [](const GraphEdge& left, const GraphEdge& right) {
    return left.source == right.source && left.target == right.target;
  };
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end(), same); twice != sorted.end())
    throw ArgumentError(fmt::format("graph: the edge {} appears twice; add up the weights of equal edges",
                                    edge_text(*twice)));
  // Compressed rows: the edges of a target are counted one place further on, and running sums turn the counts into
  // where each target's edges begin.
  begin_.assign(static_cast<std::size_t>(nodes) + 1, 0);
  for (const GraphEdge& edge : sorted) {
    ++begin_[static_cast<std::size_t>(edge.target) + 1];
    incoming_.push_back({edge.source, edge.weight});
  }
  for (std::size_t node = 1; node < begin_.size(); ++node) begin_[node] += begin_[node - 1];
}

InputGraph InputGraph::from_adjacency(const Matrix<double>& adjacency) {
  if (adjacency.rows() != adjacency.cols())
    throw ArgumentError(fmt::format("graph: expected a square matrix of weights, got {} x {}",
                                    adjacency.rows(), adjacency.cols()));
  std::vector<GraphEdge> edges;
  for (Index source = 0; source < adjacency.rows(); ++source)
    for (Index target = 0; target < adjacency.cols(); ++target)
      if (adjacency(source, target) != 0) edges.push_back({source, target, adjacency(source, target)});
  return {adjacency.rows(), edges};
}

double InputGraph::weight(Index source, Index target) const {
  const auto edges = incoming(target);
  const auto found =
      std::lower_bound(edges.begin(), edges.end(), source,
                       [](const Incoming& edge, Index wanted) { return edge.source < wanted; });
  return found != edges.end() && found->source == source ? found->weight : 0;
}

std::optional<GraphEdge> InputGraph::one_way_edge() const {
  for (Index target = 0; target < nodes(); ++target)
    for (const Incoming& edge : incoming(target))
      if (weight(target, edge.source) != edge.weight) return GraphEdge{edge.source, target, edge.weight};
  return std::nullopt;
}

}  // namespace widelimit
