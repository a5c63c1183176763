#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "network/graph.hpp"
#include "widelimit/error.hpp"

namespace widelimit {

/// Whether an operation has an adjoint.
[[nodiscard]] inline bool has_backward_pass(const Operation& operation) {
  if (const RowStage* row = row_stage_of(operation)) return row->has_adjoint();
  if (const PairStage* pair = pair_stage_of(operation)) return pair->has_adjoint();
  if (const auto* local = std::get_if<LocalAffineNode>(&operation))
    return local->stage == nullptr || local->stage->has_adjoint();
  return true;
}

/// Whether every operation of a graph has an adjoint.
[[nodiscard]] inline bool has_backward_pass(const Graph& graph) {
  return std::all_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& node) { return has_backward_pass(node.operation); });
}

/// Throws ArgumentError, naming the layer, for a graph with an operation that has no adjoint.
inline void require_backward_pass(const Graph& graph) {
  for (const Node& node : graph.nodes)
    if (!has_backward_pass(node.operation))
      throw ArgumentError(fmt::format(
          "gram_vjp: {}: this layer has no adjoint, so that its kernels have no derivatives here{}",
          node.path, graph.fewest_samples > 0 ? " (layers that are sampled have none)" : ""));
}

}  // namespace widelimit
