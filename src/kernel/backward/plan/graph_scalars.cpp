#include "kernel/backward/plan/graph_scalars.hpp"

#include <variant>

namespace widelimit {

std::vector<double> scalars_of(const Operation& operation) {
  if (const auto* affine = std::get_if<AffineNode>(&operation))
    return {affine->weight_variance, affine->bias_variance};
  if (const auto* sum = std::get_if<SumNode>(&operation)) return sum->factors;
  if (const auto* product = std::get_if<ProductNode>(&operation)) return {product->factor};
  return {};
}

std::vector<double> graph_scalars(const Graph& graph) {
  std::vector<double> scalars;
  for (const Node& node : graph.nodes)
    for (const double scalar : scalars_of(node.operation)) scalars.push_back(scalar);
  return scalars;
}

bool has_scalars_only(const Operation& operation) {
  if (const auto* input = std::get_if<InputNode>(&operation)) return input->transforms.empty();
  return std::holds_alternative<AffineNode>(operation) || std::holds_alternative<SumNode>(operation) ||
         std::holds_alternative<ProductNode>(operation) || std::holds_alternative<PoolNode>(operation) ||
         std::holds_alternative<ReadoutNode>(operation);
}

}  // namespace widelimit
