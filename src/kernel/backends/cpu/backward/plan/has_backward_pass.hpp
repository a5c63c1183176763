#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "kernel/plan/primitives.hpp"
#include "widelimit/error.hpp"

namespace widelimit {

/// Whether every operation of a graph has an adjoint.
[[nodiscard]] inline bool has_backward_pass(const Graph& graph) {
  return std::all_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& node) { return has_adjoint(node.operation); });
}

/// Throws ArgumentError, naming the layer, for a graph with an operation that has no adjoint.
inline void require_backward_pass(const Graph& graph) {
  for (const Node& node : graph.nodes)
    if (!has_adjoint(node.operation))
      throw ArgumentError(fmt::format(
          "gram_vjp: {}: this layer has no adjoint, so that its kernels have no derivatives here{}",
          node.path, graph.fewest_samples > 0 ? " (layers that are sampled have none)" : ""));
}

}  // namespace widelimit
