#include "kernel/backends/cpu/planes/store_places.hpp"

#include <algorithm>
#include <map>

#include "kernel/plan/axis_mapping.hpp"
#include "kernel/vector_padding.hpp"
#include "network/plane_mapping.hpp"

namespace widelimit {
namespace {

/// Hands out places in a pair's store, and takes them back when a node is no longer read. The first free place that
/// is large enough is taken; neighbouring free places are joined.
class PlaceAllocator {
 public:
  Index take(Index size) {
    for (auto& [begin, length] : free_) {
      if (length < size) continue;
      const Index place = begin;
      const Index rest = length - size;
      free_.erase(place);
      if (rest > 0) free_[place + size] = rest;
      return place;
    }
    end_ += size;
    return end_ - size;
  }

  void give_back(Index begin, Index size) {
    auto place = free_.emplace(begin, size).first;
    const auto next = std::next(place);
    if (next != free_.end() && place->first + place->second == next->first) {
      place->second += next->second;
      free_.erase(next);
    }
    if (place == free_.begin()) return;
    const auto previous = std::prev(place);
    if (previous->first + previous->second != place->first) return;
    previous->second += place->second;
    free_.erase(place);
  }

  [[nodiscard]] Index end() const { return end_; }

 private:
  std::map<Index, Index> free_;  // begin -> size
  Index end_ = 0;
};

/// The kept nodes that a chain reads: those it loads, and whole inputs of local or circular convolutions, which are not
/// among an instruction's inputs.
std::vector<NodeId> kept_nodes_read(const Program& program, const Chain& chain) {
  std::vector<NodeId> nodes;
  for (const Instruction& instruction : chain.instructions) {
    if (instruction.loads)
      nodes.push_back(instruction.node);
    else if (instruction.inputs.empty())
      for (const NodeId input : program.graph.nodes[instruction.node].inputs) nodes.push_back(input);
  }
  return nodes;
}

std::vector<NodeId> kept_nodes_read(const Program& program, const Step& step) {
  if (const auto* plane = std::get_if<PlaneStep>(&step)) return kept_nodes_read(program, plane->chain);
  if (std::holds_alternative<InputStep>(step)) return {};
  return program.graph.nodes[std::get<PairStep>(step).node].inputs;
}

NodeId node_written(const Step& step) {
  if (const auto* plane = std::get_if<PlaneStep>(&step)) return plane->target;
  if (const auto* input = std::get_if<InputStep>(&step)) return input->node;
  return std::get<PairStep>(step).node;
}

bool is_read_by_pair_stage(const Program& program, NodeId node) {
  return std::any_of(program.steps.begin(), program.steps.end(), [&](const Step& step) {
    const auto* pair = std::get_if<PairStep>(&step);
    return pair != nullptr && program.graph.nodes[pair->node].inputs[0] == node;
  });
}

/// Runs know that the NTK of an input is zero and do not read it. Pair stages do.
bool reads_ntk(const Program& program, NodeId node) {
  return !multiplies_features(program.graph.nodes[node].operation) || is_read_by_pair_stage(program, node);
}

/// The step that reads a node last.
std::vector<std::size_t> last_readers(const Program& program) {
  std::vector<std::size_t> last(program.graph.nodes.size(), 0);
  for (std::size_t s = 0; s < program.steps.size(); ++s)
    for (const NodeId node : kept_nodes_read(program, program.steps[s])) last[node] = s;
  return last;
}

/// True if nothing but loads of planes reads a node.
bool is_only_loaded(const Program& program, NodeId node) {
  const auto gathers = [&](const Instruction& instruction) {
    const auto& inputs = program.graph.nodes[instruction.node].inputs;
    return !instruction.loads && instruction.inputs.empty() &&
           std::find(inputs.begin(), inputs.end(), node) != inputs.end();
  };
  return std::all_of(program.steps.begin(), program.steps.end(), [&](const Step& step) {
    const auto* plane = std::get_if<PlaneStep>(&step);
    if (plane == nullptr) return !is_read_by_pair_stage(program, node);
    return std::none_of(plane->chain.instructions.begin(), plane->chain.instructions.end(), gathers);
  });
}

/// The offsets of a node that are stored. If only loads read a map of positions, its planes that are all zeros are
/// left out; loads write the zeros themselves.
Offsets kept_offsets(const Program& program, const PairGeometry& geometry, NodeId node) {
  Offsets offsets = geometry.demanded[node];
  const PlaneMapping* mapping = plane_mapping(pair_stage_of(program.graph.nodes[node].operation));
  if (mapping == nullptr || !is_only_loaded(program, node)) return offsets;
  const NodeId input = program.graph.nodes[node].inputs[0];
  const auto left = mapping->sparse_axes(geometry.shapes.left[input]),
             right = mapping->sparse_axes(geometry.shapes.right[input]);
  for (std::size_t k = 0; k < 3; ++k) {
    const AxisMapping axis(left[k], right[k]);
    std::erase_if(offsets.axis[k], [&](Index offset) { return axis.offsets_in_front({offset}).empty(); });
    // A layout needs planes, and planes of zeros are as good as any.
    if (offsets.axis[k].empty()) return geometry.demanded[node];
  }
  return offsets;
}

std::vector<StoreLayout> store_layouts(const Program& program, const PairGeometry& geometry) {
  std::vector<StoreLayout> layouts(program.graph.nodes.size());
  for (NodeId id = 0; id < layouts.size(); ++id) {
    if (!program.kept[id] || geometry.demanded[id].empty()) continue;
    const Index3 &left = geometry.left_sizes[id], &right = geometry.right_sizes[id];
    layouts[id] = program.as_matrix[id]
                      ? StoreLayout::matrix(left, right)
                      : StoreLayout::planes(left, right, kept_offsets(program, geometry, id));
  }
  return layouts;
}

}  // namespace

StorePlaces place_stores(const Program& program, const PairGeometry& geometry, Kernel kernel) {
  StorePlaces stores;
  stores.layouts = store_layouts(program, geometry);
  for (NodeId id = 0; id < program.graph.nodes.size(); ++id)
    stores.keeps_ntk.push_back(kernel == Kernel::with_ntk && reads_ntk(program, id));
  const std::vector<std::size_t> last_read = last_readers(program);
  PlaceAllocator places;
  std::map<NodeId, Index> placed;  // node -> numbers
  stores.begin.assign(program.graph.nodes.size(), 0);
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const NodeId written = node_written(program.steps[s]);
    const StoreLayout& layout = stores.layouts[written];
    if (program.kept[written] && layout.size() > 0) {
      // A step's result takes its place while the nodes that it reads still have theirs.
      placed[written] = (stores.keeps_ntk[written] ? 2 : 1) * padded(layout.size());
      stores.begin[written] = places.take(placed[written]);
      if (is_read_by_pair_stage(program, written) || layout.is_matrix())
        stores.matrix_size += placed[written];
    }
    std::erase_if(placed, [&](const auto& entry) {
      if (last_read[entry.first] > s) return false;
      places.give_back(stores.begin[entry.first], entry.second);
      return true;
    });
  }
  stores.size = places.end();
  return stores;
}

}  // namespace widelimit
