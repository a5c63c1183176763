#pragma once

#include <vector>

#include "network/graph.hpp"

namespace widelimit {

/// The numbers of a linear operation: of an AffineNode its weight and bias variance, of a SumNode its factors, of a
/// ProductNode its factor; of others none, as what they are made of stays inside them.
[[nodiscard]] std::vector<double> scalars_of(const Operation& operation);

/// Those of all operations of a graph, in the order of its nodes.
[[nodiscard]] std::vector<double> graph_scalars(const Graph& graph);

/// Whether an operation has no numbers but these, which is all that graph_scalars() can tell of it.
[[nodiscard]] bool has_scalars_only(const Operation& operation);

}  // namespace widelimit
