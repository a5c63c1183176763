#pragma once

#include <optional>
#include <span>
#include <vector>

#include "widelimit/matrix.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit {

/// An edge of an input's graph: it carries the value at node `source` to node `target`.
struct GraphEdge {
  Index source;
  Index target;
  double weight = 1;
};

/// The graph that an input carries: its positions are the nodes. Edges are directed; between nodes of an undirected
/// graph there is one in each direction. Immutable.
class InputGraph {
 public:
  /// An edge that leads to some node.
  struct Incoming {
    Index source;
    double weight;
  };

  /// Throws ArgumentError, naming the edge, for fewer than one node, nodes that do not exist, weights other
  /// than 0 and 1e-100 to 1e100 in size, and edges that occur twice. Cost: O(nodes + edges log edges).
  InputGraph(Index nodes, std::span<const GraphEdge> edges);

  /// The edges are the entries [source, target] that are not 0. Throws ArgumentError unless the matrix is square and
  /// finite.
  [[nodiscard]] static InputGraph from_adjacency(const Matrix<double>& adjacency);

  /// At least 1.
  [[nodiscard]] Index nodes() const { return static_cast<Index>(begin_.size()) - 1; }
  [[nodiscard]] Index edges() const { return static_cast<Index>(incoming_.size()); }

  /// The edges that lead to a node, by their sources.
  [[nodiscard]] std::span<const Incoming> incoming(Index target) const {
    const Incoming* first = incoming_.data();
    return {first + begin_[static_cast<std::size_t>(target)],
            first + begin_[static_cast<std::size_t>(target) + 1]};
  }

  /// The weight of the edge from `source` to `target`, 0 if there is none. O(log edges).
  [[nodiscard]] double weight(Index source, Index target) const;

  /// An edge whose opposite is missing or has another weight; nothing if the graph is undirected.
  [[nodiscard]] std::optional<GraphEdge> one_way_edge() const;

 private:
  std::vector<Index> begin_;  ///< The beginning of each node's edges, and the end.
  std::vector<Incoming> incoming_;
};

}  // namespace widelimit
