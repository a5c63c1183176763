#include "kernel/plan/program.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "kernel/plan/geometry.hpp"
#include "kernel/plan/selections.hpp"
#include "kernel/readouts/pair_sums.hpp"

namespace widelimit {
namespace {

/// True if a node reads its input as a whole, not one plane at a time.
bool reads_whole_input(const Operation& operation) {
  const Reads reads = reads_of(operation);
  return reads == Reads::matrix || reads == Reads::kept_windows;
}

/// True if a node reads its input best as a matrix. Functionals (readouts pulled back) sum over planes just as
/// quickly.
bool reads_matrix(const Operation& operation) {
  return reads_of(operation) == Reads::matrix && functional_stage(*pair_stage_of(operation)) == nullptr;
}

/// How positions of a chain's root lead to positions of a node upstream, through the windows between them: position a
/// of the root reads from stride * a - front on. Two inputs of different shape have different fronts, and with these
/// the offset at which the node is read differs (OffsetMap).
struct Way {
  Index3 stride{1, 1, 1};
  std::vector<Index3> fronts;  ///< [shape of an input]

  /// True if both ways read the node at the same offset, whichever two inputs are paired. Offsets contain differences
  /// of the fronts of two shapes, so fronts may differ by a constant.
  [[nodiscard]] bool agrees_with(const Way& other) const {
    if (stride != other.stride) return false;
    const auto difference = [&](std::size_t shape, std::size_t axis) {
      return fronts[shape][axis] - other.fronts[shape][axis];
    };
    for (std::size_t shape = 1; shape < fronts.size(); ++shape)
      for (std::size_t k = 0; k < 3; ++k)
        if (difference(shape, k) != difference(0, k)) return false;
    return true;
  }
};

/// Decides which nodes are kept as a whole for a pair, and cuts the rest of the graph into chains that end at kept
/// nodes, poolings, maps and readouts. Kept nodes are those that something reads as a whole, that several chains would
/// evaluate again, or that one chain would need at several offsets.
class Scheduler {
 public:
  Scheduler(Graph graph, const std::vector<std::vector<Shape>>& shapes, const std::set<NodeId>& matrix_inputs)
      : shapes_{shapes} {
    program_.graph = with_selections(std::move(graph), shapes);
    const std::size_t count = nodes().size();
    for (const Shape& shape : largest_shapes()) program_.has_positions.push_back(!shape.empty());
    program_.kept.assign(count, false);
    program_.as_matrix.assign(count, false);
    matrix_inputs_ = matrix_inputs;
    for (const NodeId input : matrix_inputs) program_.kept[input] = program_.as_matrix[input] = true;
    find_consumers();
  }

  Program schedule() {
    mark_barriers();
    mark_shared();
    // Keeping a node cuts a chain in two, after which other nodes may be shared by both, and ways within the new chains
    // are different. Nodes are only ever added, so this ends.
    while (mark_conflicting_ways()) mark_shared();
    for (NodeId id = 0; id < nodes().size(); ++id) add_steps(id);
    program_.pair_rows = make_run(program_.graph.output, false);
    return std::move(program_);
  }

 private:
  const std::vector<Node>& nodes() const { return program_.graph.nodes; }
  const std::vector<Shape>& largest_shapes() const { return shapes_.front(); }

  void find_consumers() {
    consumers_.resize(nodes().size());
    for (NodeId id = 0; id < nodes().size(); ++id)
      for (const NodeId input : nodes()[id].inputs) consumers_[input].push_back(id);
  }

  void mark_barriers() {
    for (NodeId id = 0; id < nodes().size(); ++id) {
      if (!program_.has_positions[id]) continue;
      const Operation& operation = nodes()[id].operation;
      // Poolings and maps add up planes of many offsets, and pair stages write whole matrices, so their results are
      // kept.
      const bool writes_matrix = reads_of(operation) == Reads::matrix;
      if (gathers_planes(operation) || writes_matrix) program_.kept[id] = true;
      if (writes_matrix) program_.as_matrix[id] = true;
      if (!reads_whole_input(operation)) continue;
      const NodeId input = nodes()[id].inputs[0];
      program_.kept[input] = true;
      // What poolings and maps have added up is stored as planes, because planes are what they write.
      if (reads_matrix(operation) && !gathers_planes(nodes()[input].operation) &&
          !is_large_image(largest_shapes()[input]))
        program_.as_matrix[input] = true;
    }
  }

  /// Entries of one plane are far apart in the matrix of a large image, each in a cache line of its own. Such nodes
  /// are stored as planes, and the matrix is assembled from planes of neighbouring offsets (assemble_matrix() in
  /// planes/pair_stores.cpp).
  static bool is_large_image(const Shape& shape) {
    constexpr Index many_positions = 512;
    return shape.size() > 1 && position_count(shape) > many_positions;
  }

  /// The root of the chain in which a consumer evaluates its input. Nodes that end chains stand for themselves.
  NodeId root_for(NodeId consumer) const {
    const Operation& reader = nodes()[consumer].operation;
    const bool ends_chains = gathers_planes(reader) || reads_out(reader) || reads_of(reader) == Reads::matrix;
    return ends_chains || program_.kept[consumer] ? consumer : roots_[consumer];
  }

  /// Keeps every node that more than one chain would evaluate, and works out the root of the chain of all others.
  /// Inputs are cheap enough to be evaluated again.
  void mark_shared() {
    roots_.assign(nodes().size(), 0);
    for (NodeId id = nodes().size(); id-- > 0;) {
      if (!program_.has_positions[id] || multiplies_features(nodes()[id].operation)) continue;
      std::set<NodeId> roots;
      for (const NodeId consumer : consumers_[id]) roots.insert(root_for(consumer));
      if (roots.size() > 1) program_.kept[id] = true;
      if (!roots.empty()) roots_[id] = *roots.begin();
    }
  }

  /// The way from a chain's root to itself.
  Way way_to_root() const { return {{1, 1, 1}, std::vector<Index3>(shapes_.size(), Index3{0, 0, 0})}; }

  /// The way to a node's inputs, given the way to the node.
  Way way_through(NodeId node, Way way) const {
    const Window* shared = shared_window(nodes()[node].operation);
    if (shared == nullptr) return way;
    const Window3 window(*shared);
    for (std::size_t k = 0; k < 3; ++k) way.stride[k] *= window.stride[k];
    for (std::size_t shape = 0; shape < shapes_.size(); ++shape) {
      const Index3 front = window.front(three_axes(shapes_[shape][nodes()[node].inputs[0]]));
      for (std::size_t k = 0; k < 3; ++k)
        way.fronts[shape][k] = window.stride[k] * way.fronts[shape][k] + front[k];
    }
    return way;
  }

  /// Keeps nodes to which two ways from one root disagree, because a chain evaluates a node at one offset only, but can
  /// load it at several. Returns whether any node was added.
  bool mark_conflicting_ways() {
    bool changed = false;
    for (NodeId id = 0; id < nodes().size(); ++id) {
      if (!program_.has_positions[id] || !begins_run(id)) continue;
      std::map<NodeId, Way> ways{{id, way_to_root()}};
      // From the root upstream; kept nodes and whole inputs end the chain.
      for (NodeId node = id + 1; node-- > 0;) {
        const auto found = ways.find(node);
        if (found == ways.end() || (node != id && program_.kept[node])) continue;
        if (gathers_planes(nodes()[node].operation) || reads_whole_input(nodes()[node].operation)) continue;
        const Way way = way_through(node, found->second);
        for (const NodeId input : nodes()[node].inputs) {
          const auto [place, fresh] = ways.emplace(input, way);
          if (fresh || place->second.agrees_with(way) || program_.kept[input]) continue;
          program_.kept[input] = true;
          changed = true;
        }
      }
    }
    return changed;
  }

  /// True for nodes that some step evaluates as the root of a chain.
  bool begins_run(NodeId id) const {
    if (program_.kept[id]) return true;
    return std::any_of(consumers_[id].begin(), consumers_[id].end(), [&](NodeId consumer) {
      const Operation& reader = nodes()[consumer].operation;
      return gathers_planes(reader) || reads_out(reader);
    });
  }

  void add_steps(NodeId id) {
    const Operation& operation = nodes()[id].operation;
    if (reads_out(operation) || (gathers_planes(operation) && program_.has_positions[id])) {
      program_.steps.push_back(PlaneStep{make_run(nodes()[id].inputs[0], true), id});
    } else if (program_.has_positions[id] && reads_of(operation) == Reads::matrix) {
      program_.steps.push_back(PairStep{id});
    } else if (matrix_inputs_.contains(id)) {
      program_.steps.push_back(InputStep{id});
    } else if (program_.has_positions[id] && program_.kept[id]) {
      program_.steps.push_back(PlaneStep{make_run(id, false), id});
    }
  }

  /// True if a chain reads the node instead of evaluating it.
  bool is_loaded(NodeId id, NodeId root, bool load_root) const {
    const Operation& operation = nodes()[id].operation;
    if (!program_.has_positions[id]) return reads_out(operation);
    return program_.kept[id] && (id != root || load_root);
  }

  /// The ways to the nodes of a chain. Nodes that are loaded may have several that disagree.
  using Ways = std::map<NodeId, std::vector<Way>, std::greater<>>;

  Ways find_ways(NodeId root, bool load_root) const {
    Ways ways{{root, {way_to_root()}}};
    // The map is sorted from readers to inputs, so that nodes which are inserted during the loop are still to come.
    for (auto node = ways.begin(); node != ways.end(); ++node) {
      const auto& [id, of_node] = *node;
      if (!reads_inputs(id, root, load_root)) continue;
      const Way way = way_through(id, of_node.front());
      for (const NodeId input : nodes()[id].inputs) {
        std::vector<Way>& of_input = ways[input];
        if (number_among(of_input, way) == of_input.size()) of_input.push_back(way);
      }
    }
    return ways;
  }

  /// The number of the first way that agrees, or the number of ways if none does.
  static std::size_t number_among(const std::vector<Way>& ways, const Way& way) {
    const auto found =
        std::find_if(ways.begin(), ways.end(), [&](const Way& other) { return other.agrees_with(way); });
    return static_cast<std::size_t>(found - ways.begin());
  }

  /// Makes the chain of a root, with one instruction for each way to each node. `load_root` says that the root itself
  /// is read if it is kept, as the chain of a pooling or readout after it does.
  Chain make_run(NodeId root, bool load_root) const {
    const Ways ways = find_ways(root, load_root);
    Chain chain{root, {}, 0};
    std::map<NodeId, std::size_t> first_of;
    for (auto node = ways.rbegin(); node != ways.rend(); ++node) {
      const auto& [id, of_node] = *node;
      first_of[id] = chain.instructions.size();
      for (std::size_t i = 0; i < of_node.size(); ++i) {
        Instruction instruction{id, is_loaded(id, root, load_root), {}, 0};
        if (reads_inputs(id, root, load_root)) {
          const Way way = way_through(id, of_node[i]);
          for (const NodeId input : nodes()[id].inputs)
            instruction.inputs.push_back(first_of.at(input) + number_among(ways.at(input), way));
        }
        chain.instructions.push_back(std::move(instruction));
      }
    }
    assign_slots(chain);
    for (Instruction& instruction : chain.instructions) instruction.gaps = gaps_of(chain, instruction);
    return chain;
  }

  /// True if instructions for the node read others; not those that load it or read a whole input.
  bool reads_inputs(NodeId id, NodeId root, bool load_root) const {
    if (is_loaded(id, root, load_root)) return false;
    return !program_.has_positions[id] || !reads_whole_input(nodes()[id].operation);
  }

  /// What an instruction leaves in the gaps of its planes. Loads leave zeros.
  Gaps gaps_of(const Chain& chain, const Instruction& instruction) const {
    if (instruction.loads) return Gaps::zero;
    Gaps inputs = Gaps::zero;
    for (const std::size_t input : instruction.inputs)
      inputs = std::min(inputs, chain.instructions[input].gaps);
    return gaps_after(nodes()[instruction.node].operation, inputs);
  }

  /// Gives every instruction a slot. A slot is free again after the last instruction that reads it. An output never
  /// shares a slot with an input that another instruction still needs. Stages that work in place get the slot of an
  /// input that is read for the last time.
  void assign_slots(Chain& chain) const {
    std::vector<std::size_t> last_reader(chain.instructions.size(), 0);
    for (std::size_t i = 0; i < chain.instructions.size(); ++i)
      for (const std::size_t input : chain.instructions[i].inputs) last_reader[input] = i;
    std::set<std::size_t> free;
    for (std::size_t i = 0; i < chain.instructions.size(); ++i) {
      Instruction& instruction = chain.instructions[i];
      // These slots become free after this instruction, not before: an instruction that does not work in place must
      // not overwrite what it reads.
      std::set<std::size_t> dying;
      for (const std::size_t input : instruction.inputs)
        if (last_reader[input] == i) dying.insert(chain.instructions[input].slot);
      const Operation& operation = nodes()[instruction.node].operation;
      if (works_in_place(operation, instruction.inputs.size()) && !dying.empty()) {
        instruction.slot = *dying.begin();
        dying.erase(dying.begin());
        free.insert(dying.begin(), dying.end());
        continue;
      }
      if (free.empty()) free.insert(chain.slot_count++);
      instruction.slot = *free.begin();
      free.erase(free.begin());
      free.insert(dying.begin(), dying.end());
    }
  }

  const std::vector<std::vector<Shape>>& shapes_;
  Program program_;
  std::set<NodeId> matrix_inputs_;
  std::vector<std::vector<NodeId>> consumers_;
  std::vector<NodeId> roots_;
};

}  // namespace

Program make_program(Graph graph, const std::vector<std::vector<Shape>>& shapes,
                     const std::set<NodeId>& matrix_inputs) {
  return Scheduler(std::move(graph), shapes, matrix_inputs).schedule();
}

}  // namespace widelimit
