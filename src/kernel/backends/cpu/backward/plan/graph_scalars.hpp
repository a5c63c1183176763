#pragma once

#include <vector>

#include "kernel/plan/primitives.hpp"

namespace widelimit {

/// The numbers of a linear operation, one after the other: those of weights and biases, of sums and of products.
/// Operations with numbers that are hidden inside their stages have none.
[[nodiscard]] inline std::vector<double> scalars_of(const Operation& operation) {
  std::vector<double> scalars;
  if (!has_numbers_only(operation)) return scalars;
  for (const NamedNumber& number : numbers_of(operation)) scalars.push_back(number.value);
  return scalars;
}

/// The numbers of all operations of a graph, in the order of its nodes.
[[nodiscard]] inline std::vector<double> graph_scalars(const Graph& graph) {
  std::vector<double> scalars;
  for (const Node& node : graph.nodes)
    for (const double scalar : scalars_of(node.operation)) scalars.push_back(scalar);
  return scalars;
}

}  // namespace widelimit
