#pragma once

#include <vector>

#include "widelimit/layers/graphs.hpp"
#include "widelimit/network/input_graph.hpp"

namespace widelimit::layers {

/// The normalisation of a graph's aggregation, P[a, b] = target[a] (weight(b -> a) + [a = b and self loops]) source[b].
struct NodeFactors {
  std::vector<double> target;
  std::vector<double> source;
};

/// The factors L and R of docs/theory/graphs.md, section 1. Throws ArgumentError, naming node or edge, if the graph
/// cannot be normalised so.
NodeFactors node_factors(const InputGraph& graph, const AggregateOptions& options);

/// Returns the graph. Throws ArgumentError if there is none, or if it does not have a node for each position.
const InputGraph& require_graph(const InputGraph* graph, Index positions);

}  // namespace widelimit::layers
