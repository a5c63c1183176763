#pragma once

#include <vector>

#include "network/graph.hpp"

namespace widelimit {

/// Replaces maps that only choose positions in steps, from a first one on and alike for all inputs, by windows of one
/// position, so that chains continue through them. `shapes` are those after all nodes, for every shape of an input.
Graph with_selections(Graph graph, const std::vector<std::vector<Shape>>& shapes);

}  // namespace widelimit
