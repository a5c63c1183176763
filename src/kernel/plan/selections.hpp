#pragma once

#include <vector>

#include "network/graph.hpp"

namespace widelimit {

/// The graph with windows of single positions in place of maps that do nothing but choose positions in steps from a
/// first one on, the same for all inputs: so runs go through them.
/// `shapes`: those of all nodes for every shape of an input.
Graph with_selections(Graph graph, const std::vector<std::vector<Shape>>& shapes);

}  // namespace widelimit
