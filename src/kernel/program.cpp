#include "kernel/program.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "kernel/geometry.hpp"
#include "network/pair_sums.hpp"

namespace widelimit {
namespace {

template <typename... Kinds>
bool is_any(const Operation& operation) {
  return (std::holds_alternative<Kinds>(operation) || ...);
}

/// True if a node reads its input as a whole, not one plane at a time.
bool reads_whole_input(const Operation& operation) {
  return is_any<PairNode, LocalAffineNode>(operation) || is_circular(operation);
}

/// Functionals are as quick on planes.
bool reads_matrix(const Operation& operation) {
  const auto* pair = std::get_if<PairNode>(&operation);
  return pair != nullptr && functional_stage(*pair->stage) == nullptr;
}

/// Strides between the offsets of a node's output and of its input.
Index3 offset_stride(const Operation& operation) {
  const auto* affine = std::get_if<AffineNode>(&operation);
  return affine == nullptr ? Index3{1, 1, 1} : Window3(affine->window).stride;
}

class Scheduler {
 public:
  Scheduler(Graph graph, const std::vector<Shape>& shapes, const std::set<NodeId>& matrix_inputs)
      : shapes_{shapes} {
    program_.graph = std::move(graph);
    const std::size_t count = nodes().size();
    for (const Shape& shape : shapes) program_.has_positions.push_back(!shape.empty());
    program_.kept.assign(count, false);
    program_.as_matrix.assign(count, false);
    matrix_inputs_ = matrix_inputs;
    for (const NodeId input : matrix_inputs) program_.kept[input] = program_.as_matrix[input] = true;
    find_consumers();
  }

  Program schedule() {
    mark_barriers();
    mark_shared();
    while (mark_conflicting_strides()) mark_shared();
    for (NodeId id = 0; id < nodes().size(); ++id) add_steps(id);
    program_.points = make_run(program_.graph.output, false);
    return std::move(program_);
  }

 private:
  const std::vector<Node>& nodes() const { return program_.graph.nodes; }

  void find_consumers() {
    consumers_.resize(nodes().size());
    for (NodeId id = 0; id < nodes().size(); ++id)
      for (const NodeId input : nodes()[id].inputs) consumers_[input].push_back(id);
  }

  void mark_barriers() {
    for (NodeId id = 0; id < nodes().size(); ++id) {
      if (!program_.has_positions[id]) continue;
      const Operation& operation = nodes()[id].operation;
      if (is_any<PairNode, PoolNode>(operation)) program_.kept[id] = true;
      if (is_any<PairNode>(operation)) program_.as_matrix[id] = true;
      if (!reads_whole_input(operation)) continue;
      const NodeId input = nodes()[id].inputs[0];
      program_.kept[input] = true;
      if (reads_matrix(operation) && !is_any<PoolNode>(nodes()[input].operation) &&
          !is_large_image(shapes_[input]))
        program_.as_matrix[input] = true;
    }
  }

  /// The planes of one run after the other are far apart in the matrix of a large image, each entry in a
  /// cache line of its own; so they are kept as planes, and the matrix is put together from neighbouring
  /// ones.
  static bool is_large_image(const Shape& shape) {
    constexpr Index many_positions = 512;
    return shape.size() > 1 && position_count(shape) > many_positions;
  }

  /// The root of the run in which a consumer evaluates its input.
  NodeId root_for(NodeId consumer) const {
    const bool sink = is_any<PoolNode, ReadoutNode, PairNode>(nodes()[consumer].operation);
    return sink || program_.kept[consumer] ? consumer : roots_[consumer];
  }

  /// Keeps every node that more than one run would evaluate. Inputs are cheap enough to evaluate again.
  void mark_shared() {
    roots_.assign(nodes().size(), 0);
    for (NodeId id = nodes().size(); id-- > 0;) {
      if (!program_.has_positions[id] || is_any<InputNode>(nodes()[id].operation)) continue;
      std::set<NodeId> roots;
      for (const NodeId consumer : consumers_[id]) roots.insert(root_for(consumer));
      if (roots.size() > 1) program_.kept[id] = true;
      if (!roots.empty()) roots_[id] = *roots.begin();
    }
  }

  /// A run evaluates every node at one offset. Where two ways from the root to a node differ in stride, keep
  /// the node.
  bool mark_conflicting_strides() {
    bool changed = false;
    for (NodeId id = 0; id < nodes().size(); ++id) {
      if (!program_.has_positions[id] || !begins_run(id)) continue;
      std::map<NodeId, Index3> strides{{id, {1, 1, 1}}};
      for (NodeId node = id + 1; node-- > 0;) {
        const auto found = strides.find(node);
        if (found == strides.end() || (node != id && program_.kept[node])) continue;
        if (is_any<PoolNode>(nodes()[node].operation) || reads_whole_input(nodes()[node].operation)) continue;
        Index3 stride = found->second;
        const Index3 own = offset_stride(nodes()[node].operation);
        for (std::size_t k = 0; k < 3; ++k) stride[k] *= own[k];
        for (const NodeId input : nodes()[node].inputs) {
          const auto [place, fresh] = strides.emplace(input, stride);
          if (fresh || place->second == stride || program_.kept[input]) continue;
          program_.kept[input] = true;
          changed = true;
        }
      }
    }
    return changed;
  }

  /// True for nodes that some step evaluates as the root of a run.
  bool begins_run(NodeId id) const {
    if (program_.kept[id]) return true;
    return std::any_of(consumers_[id].begin(), consumers_[id].end(), [&](NodeId consumer) {
      return is_any<PoolNode, ReadoutNode>(nodes()[consumer].operation);
    });
  }

  void add_steps(NodeId id) {
    const Operation& operation = nodes()[id].operation;
    if (is_any<ReadoutNode>(operation) || (is_any<PoolNode>(operation) && program_.has_positions[id])) {
      program_.steps.push_back(PlaneStep{make_run(nodes()[id].inputs[0], true), id});
    } else if (program_.has_positions[id] && is_any<PairNode>(operation)) {
      program_.steps.push_back(PairStep{id});
    } else if (matrix_inputs_.contains(id)) {
      program_.steps.push_back(InputStep{id});
    } else if (program_.has_positions[id] && program_.kept[id]) {
      program_.steps.push_back(PlaneStep{make_run(id, false), id});
    }
  }

  /// True if a run reads the node instead of evaluating it.
  bool is_loaded(NodeId id, NodeId root, bool load_root) const {
    const Operation& operation = nodes()[id].operation;
    if (!program_.has_positions[id]) return is_any<ReadoutNode>(operation);
    return program_.kept[id] && (id != root || load_root);
  }

  Run make_run(NodeId root, bool load_root) const {
    std::set<NodeId> needed{root};
    for (auto node = needed.rbegin(); node != needed.rend(); ++node) {
      if (is_loaded(*node, root, load_root) ||
          (program_.has_positions[*node] && reads_whole_input(nodes()[*node].operation)))
        continue;
      needed.insert(nodes()[*node].inputs.begin(), nodes()[*node].inputs.end());
    }
    Run run{root, {}, 0};
    for (const NodeId id : needed) run.instructions.push_back({id, is_loaded(id, root, load_root), {}, 0});
    assign_slots(run);
    for (Instruction& instruction : run.instructions) instruction.gaps = gaps_behind(run, instruction);
    return run;
  }

  /// Loading clears the gaps, and so does a product of inputs: auxiliary arrays are zero there. Convolutions
  /// put numbers there; other row stages may make anything of them, NaN included.
  Gaps gaps_behind(const Run& run, const Instruction& instruction) const {
    const Operation& operation = nodes()[instruction.node].operation;
    if (instruction.loads || is_any<InputNode>(operation)) return Gaps::zero;
    if (is_circular(operation)) return Gaps::unknown;
    if (is_any<LocalAffineNode>(operation)) return Gaps::finite;
    Gaps inputs = Gaps::zero;
    for (const std::size_t input : instruction.inputs)
      inputs = std::min(inputs, run.instructions[input].gaps);
    if (const auto* affine = std::get_if<AffineNode>(&operation))
      return Window3(affine->window).is_single_position() ? std::min(inputs, Gaps::finite) : Gaps::finite;
    const auto* row = std::get_if<RowNode>(&operation);
    if (row == nullptr) return inputs;
    return inputs != Gaps::unknown && row->stage->clears_gaps() ? Gaps::zero : Gaps::unknown;
  }

  /// A slot is free again behind the last instruction that reads it. An output never shares a slot with an
  /// input that another instruction still needs; stages that work in place get their input's slot when it
  /// dies there.
  void assign_slots(Run& run) const {
    std::map<NodeId, std::size_t> number_of;
    std::vector<std::size_t> last_reader(run.instructions.size(), 0);
    for (std::size_t i = 0; i < run.instructions.size(); ++i) {
      for (const NodeId input : inputs_read(run.instructions[i])) {
        run.instructions[i].inputs.push_back(number_of.at(input));
        last_reader[number_of.at(input)] = i;
      }
      number_of[run.instructions[i].node] = i;
    }
    std::set<std::size_t> free;
    for (std::size_t i = 0; i < run.instructions.size(); ++i) {
      Instruction& instruction = run.instructions[i];
      std::set<std::size_t> dying;
      for (const std::size_t input : instruction.inputs)
        if (last_reader[input] == i) dying.insert(run.instructions[input].slot);
      if (works_in_place(instruction) && !dying.empty()) {
        instruction.slot = *dying.begin();
        dying.erase(dying.begin());
        free.insert(dying.begin(), dying.end());
        continue;
      }
      if (free.empty()) free.insert(run.slot_count++);
      instruction.slot = *free.begin();
      free.erase(free.begin());
      free.insert(dying.begin(), dying.end());
    }
  }

  std::vector<NodeId> inputs_read(const Instruction& instruction) const {
    const Node& node = nodes()[instruction.node];
    if (instruction.loads || (program_.has_positions[instruction.node] && reads_whole_input(node.operation)))
      return {};
    return node.inputs;
  }

  bool works_in_place(const Instruction& instruction) const {
    const Operation& operation = nodes()[instruction.node].operation;
    if (is_any<RowNode>(operation)) return true;
    if (is_any<SumNode>(operation)) return instruction.inputs.size() == 2;
    const auto* affine = std::get_if<AffineNode>(&operation);
    return affine != nullptr && Window3(affine->window).is_single_position();
  }

  const std::vector<Shape>& shapes_;
  Program program_;
  std::set<NodeId> matrix_inputs_;
  std::vector<std::vector<NodeId>> consumers_;
  std::vector<NodeId> roots_;
};

}  // namespace

Program make_program(Graph graph, const std::vector<Shape>& shapes, const std::set<NodeId>& matrix_inputs) {
  return Scheduler(std::move(graph), shapes, matrix_inputs).schedule();
}

}  // namespace widelimit
