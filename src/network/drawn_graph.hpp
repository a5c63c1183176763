#pragma once

#include "widelimit/network/input_graph.hpp"
#include "widelimit/numerics/random_stream.hpp"

/// Random graphs stand for those of inputs where none are given: when laws are checked and costs estimated.
namespace widelimit {

/// The directed edges of a large drawn graph, divided by its nodes: two of the ring and about two of the chords,
/// since a chord that exists already is rarely drawn again.
inline constexpr double drawn_edges_a_node = 4;

/// An undirected connected graph: a ring and as many random chords as nodes, with weights in [1/2, 3/2). A graph of a
/// single node has a loop. No node is isolated, so every normalisation of aggregations can take the graph.
[[nodiscard]] InputGraph draw_graph(Index nodes, numerics::RandomStream& random);

}  // namespace widelimit
