#pragma once

#include "network/graph.hpp"

namespace widelimit {

/// Whether every operation of a graph has an adjoint.
[[nodiscard]] bool has_backward_pass(const Graph& graph);

/// Throws ArgumentError, naming the layer, for a graph with an operation that has none.
void require_backward_pass(const Graph& graph);

}  // namespace widelimit
