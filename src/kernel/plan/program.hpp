#pragma once

#include <cstddef>
#include <set>
#include <variant>
#include <vector>

#include "network/graph.hpp"

/// The schedule of a graph (docs/engine.md): which nodes run fused, plane by plane or pair row by pair row,
/// and which are kept whole for a pair. It serves all pairs of inputs of some shapes.
namespace widelimit {

/// True for poolings, and for pair stages that map planes (PlaneMapping): the planes of a run in front are added to
/// theirs as they are finished.
[[nodiscard]] bool gathers_planes(const Operation& operation);

/// What a plane holds between its rows, and between planes of a stack.
enum class Gaps { unknown, finite, zero };

/// Evaluates one node into a slot. A slot holds one plane (or one row of pairs) of nngp and ntk. A node that
/// is loaded at several offsets at a time has an instruction for each.
struct Instruction {
  NodeId node;
  bool loads;  ///< The node is kept: read it instead of evaluating it.
  std::vector<std::size_t>
      inputs;            ///< Earlier instructions; none for loads, inputs and readers of whole inputs.
  std::size_t slot = 0;  ///< Where the result goes.
  Gaps gaps = Gaps::unknown;
};

/// Instructions in order; the last one evaluates the root. Besides the slots a run needs a slot of scratch.
struct Run {
  NodeId root;
  std::vector<Instruction> instructions;
  std::size_t slot_count;
};

/// Evaluates a run for every demanded offset of its root and puts each plane into `target`: the root itself,
/// if it is kept, or the pooling or readout after it.
struct PlaneStep {
  Run run;
  NodeId target;
};

/// Applies a pair stage: from its kept input to its kept output.
struct PairStep {
  NodeId node;
};

/// The products of a pair's inputs as a matrix.
struct InputStep {
  NodeId node;
};

using Step = std::variant<PlaneStep, InputStep, PairStep>;

struct Program {
  Graph graph;
  std::vector<Step> steps;  ///< What happens to nodes with positions, pair by pair.
  Run points;               ///< What happens after them, on rows of pairs; loads readouts.
  std::vector<bool> has_positions;
  std::vector<bool> kept;  ///< Nodes with positions that are kept whole for a pair.
  /// Kept nodes that lie as d x d' matrices, for pair stages; others lie as planes.
  std::vector<bool> as_matrix;
};

/// `shapes`: those of all nodes for every shape that occurs among the inputs, the largest first; any two may
/// be paired. `matrix_inputs`: input nodes to compute as one product a pair instead of plane by plane.
Program make_program(Graph graph, const std::vector<std::vector<Shape>>& shapes,
                     const std::set<NodeId>& matrix_inputs);

}  // namespace widelimit
