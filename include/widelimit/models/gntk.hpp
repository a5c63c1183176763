#pragma once

#include "widelimit/layers/graphs.hpp"
#include "widelimit/network/layer.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit::models {

/// How a graph's nodes become one vector.
enum class NodeReadout { sum, mean };

/// Options of gntk().
struct GntkOptions {
  Index blocks = 2;      ///< At least 0.
  Index mlp_layers = 1;  ///< Dense layers and ReLUs in each block; at least 1.
  layers::AggregateOptions aggregation{.normalise = layers::GraphNormalisation::none, .self_loops = true};
  /// Whether the readout sees the inputs and the outputs of all blocks (jumping knowledge), or only the last block's.
  bool jumping_knowledge = true;
  NodeReadout readout = NodeReadout::sum;
};

/// The graph neural network of the graph neural tangent kernel, for inputs that each carry a graph:
///     blocks times [aggregate, mlp_layers times [dense of weight variance 2, relu]], sum over nodes, dense
/// Without biases. A dense layer after concatenated blocks is a sum of dense layers, one after each: jumping
/// knowledge is written as such branches, each with a readout over its nodes.
///
/// Its NTK is the paper's Theta summed over nodes (and over blocks, with jumping knowledge), divided by the number of
/// channels of the inputs: the paper begins with x x'^T, layers here with x x'^T / C. The paper's neighbourhoods hold
/// the node itself (self_loops); its c_u are 1 (none) or 1 / degree (mean).
///
/// Errors  ArgumentError for numbers of blocks or layers out of range (at most 25 blocks with jumping knowledge).
///
/// Source  Du, Hou, Poczos, Salakhutdinov, Wang, Xu, "Graph Neural Tangent Kernel", NeurIPS 2019 (arXiv:1905.13192),
/// section 3; docs/theory/graphs.md.
[[nodiscard]] Layers gntk(const GntkOptions& options = {});

}  // namespace widelimit::models
