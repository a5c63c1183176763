#pragma once

#include <vector>

#include "kernel/plan/pair_geometry.hpp"

namespace widelimit {

/// What a backward pass computes besides derivatives of the NNGP with respect to the inputs.
struct BackwardScope {
  bool with_ntk;
  /// Derivatives with respect to graph_scalars() read values that derivatives with respect to the inputs need not
  /// keep.
  bool with_scalars;
  /// steep_nodes(), whose entries near ties are counted; null if they are not.
  const std::vector<bool>* steep = nullptr;
};

/// The chain of a plane step between inputs of two shapes, with what all parts of its backward pass read.
struct BackwardChain {
  const Program& program;
  const PairGeometry& geometry;
  const Chain& chain;
  const ChainGeometry& chain_geometry;
  bool with_ntk;
  bool with_scalars;
  const std::vector<bool>* steep = nullptr;

  [[nodiscard]] NodeId id(std::size_t i) const { return chain.instructions[i].node; }
  [[nodiscard]] const Node& node(std::size_t i) const { return program.graph.nodes[id(i)]; }
  [[nodiscard]] const Index3& left_sizes(std::size_t i) const { return geometry.left_sizes[id(i)]; }
  [[nodiscard]] const Index3& right_sizes(std::size_t i) const { return geometry.right_sizes[id(i)]; }
};

}  // namespace widelimit
