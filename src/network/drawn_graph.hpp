#pragma once

#include "widelimit/network/input_graph.hpp"
#include "widelimit/numerics/random_stream.hpp"

/// Graphs for checks and measurements, where nobody gives any.
namespace widelimit {

/// Directed edges a node of a large drawn graph, about.
inline constexpr double drawn_edges_a_node = 4;

/// An undirected connected graph: a ring and as many random chords, with weights in (1/2, 3/2). No node is isolated: a
/// single one has a loop.
[[nodiscard]] InputGraph draw_graph(Index nodes, numerics::RandomStream& random);

}  // namespace widelimit
