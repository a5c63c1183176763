#pragma once

#include <variant>
#include <vector>

#include "network/graph.hpp"

namespace widelimit {

/// The numbers of a linear operation: the weight and bias variance of an AffineNode, the factors of a SumNode, the
/// factor of a ProductNode. Other operations have none, because the numbers that they depend on are hidden inside
/// their stages.
[[nodiscard]] inline std::vector<double> scalars_of(const Operation& operation) {
  if (const auto* affine = std::get_if<AffineNode>(&operation))
    return {affine->weight_variance, affine->bias_variance};
  if (const auto* sum = std::get_if<SumNode>(&operation)) return sum->factors;
  if (const auto* product = std::get_if<ProductNode>(&operation)) return {product->factor};
  return {};
}

/// The numbers of all operations of a graph, in the order of its nodes.
[[nodiscard]] inline std::vector<double> graph_scalars(const Graph& graph) {
  std::vector<double> scalars;
  for (const Node& node : graph.nodes)
    for (const double scalar : scalars_of(node.operation)) scalars.push_back(scalar);
  return scalars;
}

/// Whether graph_scalars() has all numbers on which an operation depends.
[[nodiscard]] inline bool has_scalars_only(const Operation& operation) {
  if (const auto* input = std::get_if<InputNode>(&operation)) return input->transforms.empty();
  return std::holds_alternative<AffineNode>(operation) || std::holds_alternative<SumNode>(operation) ||
         std::holds_alternative<ProductNode>(operation) || std::holds_alternative<PoolNode>(operation) ||
         std::holds_alternative<ReadoutNode>(operation);
}

}  // namespace widelimit
