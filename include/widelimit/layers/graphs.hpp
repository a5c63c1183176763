#pragma once

#include "widelimit/network/layer.hpp"

/// Layers for inputs that each carry a graph (Inputs(inputs, graphs), widelimit/network/input_graph.hpp): positions
/// are nodes.
namespace widelimit::layers {

/// How a node's sum over its neighbours is normalised. The degree of a node is the sum of the weights of the edges that
/// lead to it, plus 1 with self loops.
enum class GraphNormalisation {
  none,
  mean,      ///< Divided by the node's degree.
  symmetric  ///< Divided by the roots of the degrees of both nodes; for undirected graphs.
};

/// How aggregate() weighs the edges.
struct AggregateOptions {
  GraphNormalisation normalise = GraphNormalisation::none;
  bool self_loops = false;  ///< Adds a loop of weight 1 to every node.
};

/// Every node takes the weighted sum of the values at the nodes from which edges lead to it, all channels alike: y =
/// P x with P[target, source] the normalised weight of the edge; so K' = P K P'^T and T' = P T P'^T, with the P of
/// either input. Use it where the positions are still the graphs' nodes.
///
/// A node to which no edge leads gets 0 (PyTorch Geometric's convention), as does a masked one. NetworkError, naming
/// layer and input, for inputs that carry no graph, for other nodes whose degree is not positive if it divides, and
/// for a directed graph under symmetric normalisation.
/// Cost: O(edges d' + edges' d) for a pair of d and d' nodes.
///
/// Source  docs/theory/graphs.md; Du et al., "Graph Neural Tangent Kernel", NeurIPS 2019 (arXiv:1905.13192), section 3.
[[nodiscard]] Layer aggregate(const AggregateOptions& options = {});

}  // namespace widelimit::layers
