#pragma once

#include <cstddef>
#include <set>
#include <variant>
#include <vector>

#include "kernel/plan/primitives.hpp"
#include "network/graph.hpp"

/// The schedule of a graph (docs/engine.md): which nodes run fused, plane by plane or pair row by pair row,
/// and which are kept whole for a pair. It serves all pairs of inputs of some shapes.
namespace widelimit {

/// Evaluates one node into a slot, which has room for one stack of planes (or some rows of pairs) of NNGP and NTK. A
/// node that a chain loads at several offsets at a time has one instruction for each.
struct Instruction {
  NodeId node;
  bool loads;  ///< Whether a kept node is read instead of being evaluated.
  std::vector<std::size_t>
      inputs;            ///< Earlier instructions; none for loads, inputs and readers of whole inputs.
  std::size_t slot = 0;  ///< Where the result goes.
  Gaps gaps = Gaps::unknown;
};

/// Instructions in the order of evaluation; the last one evaluates the root.
struct Chain {
  NodeId root;
  std::vector<Instruction> instructions;
  std::size_t slot_count;
};

/// Evaluates a chain for every demanded offset of its root. Each plane of the root goes to `target`: the root itself if
/// it is kept, or else the pooling, map or readout after it.
struct PlaneStep {
  Chain chain;
  NodeId target;
};

/// Applies a pair stage: from its kept input to its kept output.
struct PairStep {
  NodeId node;
};

/// Multiplies a pair's inputs, all positions with all, as matrices.
struct InputStep {
  NodeId node;
};

using Step = std::variant<PlaneStep, InputStep, PairStep>;

struct Program {
  Graph graph;
  std::vector<Step> steps;  ///< What happens to nodes with positions, pair by pair.
  Chain pair_rows;          ///< What happens after them, on rows of pairs; loads readouts.
  std::vector<bool> has_positions;
  std::vector<bool> kept;  ///< Nodes with positions that are kept whole for a pair.
  /// Kept nodes that are stored as d x d' matrices, because pair stages read or write them; others are stored as
  /// planes.
  std::vector<bool> as_matrix;
};

/// Schedules a graph. `shapes` are those after all nodes, for every shape that occurs among the inputs, the largest
/// first; any two may be paired. `matrix_inputs` are the input nodes that are computed as one product for each pair
/// instead of plane by plane.
Program make_program(Graph graph, const std::vector<std::vector<Shape>>& shapes,
                     const std::set<NodeId>& matrix_inputs);

}  // namespace widelimit
