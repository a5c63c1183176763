#include "network/drawn_graph.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace widelimit {

InputGraph draw_graph(Index nodes, numerics::RandomStream& random) {
  std::set<std::pair<Index, Index>> pairs;  // each pair has its smaller node first
  for (Index node = 0; node + 1 < nodes; ++node) pairs.emplace(node, node + 1);
  pairs.emplace(0, nodes - 1);
  for (Index chord = 0; nodes > 2 && chord < nodes; ++chord) {
    // A chord may be drawn twice or repeat an edge of the ring. The set then keeps it once, because an InputGraph
    // refuses edges that stand twice.
    const auto a = static_cast<Index>(random.below(static_cast<std::uint64_t>(nodes))),
               b = static_cast<Index>(random.below(static_cast<std::uint64_t>(nodes)));
    if (a != b) pairs.emplace(std::minmax(a, b));
  }
  std::vector<GraphEdge> edges;
  for (const auto& [a, b] : pairs) {
    const double weight = 0.5 + random.uniform();
    edges.push_back({a, b, weight});
    if (a != b) edges.push_back({b, a, weight});
  }
  return {nodes, edges};
}

}  // namespace widelimit
