#include "kernel/backends/cpu/planes/whole_chains.hpp"

#include <algorithm>

#include "network/graph_stage.hpp"

namespace widelimit {
namespace {

/// With this many entries, all arrays and both kernels stay in the first two levels of cache.
constexpr Index most_entries = 2048;

bool is_sequence(const Index3& sizes) { return sizes[0] == 1 && sizes[1] == 1; }

bool is_aggregation(const Operation& operation) {
  const PairStage* pair = pair_stage_of(operation);
  return pair != nullptr && dynamic_cast<const GraphStage*>(pair) != nullptr;
}

/// True if an instruction does the same at every offset.
bool is_local(const Program& program, const Instruction& instruction) {
  const Operation& operation = program.graph.nodes[instruction.node].operation;
  if (instruction.loads) return program.as_matrix[instruction.node];
  return reads_of(operation) == Reads::entries;
}

bool takes_matrices(const Program& program, NodeId target) {
  const Operation& operation = program.graph.nodes[target].operation;
  return reads_out(operation) ? reads_of(operation) == Reads::all_positions : program.as_matrix[target];
}

}  // namespace

bool runs_whole(const Program& program, const PairGeometry& geometry, const PlaneStep& step) {
  const NodeId root = step.chain.root;
  const Index3 &left = geometry.left_sizes[root], &right = geometry.right_sizes[root];
  if (!is_sequence(left) || !is_sequence(right) || left[2] > most_entries / std::max<Index>(right[2], 1))
    return false;  // By division: the product of sequences that explain() plans may be beyond an index.
  // All offsets must be demanded, or entries that nothing reads would be computed.
  if (geometry.demanded[root].count() != left[2] + right[2] - 1) return false;
  const auto& instructions = step.chain.instructions;
  return takes_matrices(program, step.target) &&
         std::any_of(instructions.begin(), instructions.end(),
                     [&](const Instruction& instruction) {
                       return instruction.loads &&
                              is_aggregation(program.graph.nodes[instruction.node].operation);
                     }) &&
         std::all_of(instructions.begin(), instructions.end(), [&](const Instruction& instruction) {
           return is_local(program, instruction) && geometry.left_sizes[instruction.node] == left &&
                  geometry.right_sizes[instruction.node] == right;
         });
}

}  // namespace widelimit
