#pragma once

#include <utility>
#include <vector>

#include "support/random_inputs.hpp"
#include "widelimit/kernel/inputs.hpp"
#include "widelimit/matrix.hpp"
#include "widelimit/network/input_graph.hpp"

namespace widelimit::testing {

/// Graphs with node features; adjacency [source, target].
struct GraphBatch {
  std::vector<Matrix<double>> features;
  std::vector<Matrix<double>> adjacency;

  [[nodiscard]] Inputs<double> inputs() const {
    std::vector<InputGraph> graphs;
    for (const auto& matrix : adjacency) graphs.push_back(InputGraph::from_adjacency(matrix));
    return {features, std::move(graphs)};
  }
};

enum class Direction { directed, undirected };

inline Matrix<double> normal_matrix(unsigned seed, Index rows, Index columns) {
  const auto numbers = random_inputs(seed, {1, rows, columns});
  return Eigen::Map<const Matrix<double>>(numbers.data(), rows, columns);
}

/// Every node has an edge to the next one, others by chance.
inline GraphBatch random_graphs(unsigned seed, const std::vector<Index>& nodes, Direction direction) {
  GraphBatch batch;
  for (const Index d : nodes) {
    batch.features.push_back(normal_matrix(seed, d, 3));
    Matrix<double> adjacency = normal_matrix(seed + 1, d, d);
    adjacency = (adjacency.array() > 0.7).select(adjacency, 0);
    for (Index node = 0; node < d; ++node) adjacency(node, (node + 1) % d) = 0.4;
    if (direction == Direction::undirected) adjacency = (adjacency + adjacency.transpose()).eval();
    batch.adjacency.push_back(adjacency);
    seed += 2;
  }
  return batch;
}

}  // namespace widelimit::testing
