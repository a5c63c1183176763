#include "kernel/plan/pair_geometry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <stdexcept>

#include "kernel/planes/vector_padding.hpp"

namespace widelimit {
namespace {

/// Hands out places in a pair's store and takes them back when a node is no longer read.
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

std::vector<NodeId> kept_nodes_read(const Program& program, const Run& run) {
  std::vector<NodeId> nodes;
  for (const Instruction& instruction : run.instructions) {
    if (instruction.loads)
      nodes.push_back(instruction.node);
    else if (instruction.inputs.empty())
      for (const NodeId input : program.graph.nodes[instruction.node].inputs) nodes.push_back(input);
  }
  return nodes;
}

std::vector<NodeId> kept_nodes_read(const Program& program, const Step& step) {
  if (const auto* plane = std::get_if<PlaneStep>(&step)) return kept_nodes_read(program, plane->run);
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

/// Plane runs know that the NTK of an input is zero; pair stages read it.
bool reads_ntk(const Program& program, NodeId node) {
  return !std::holds_alternative<InputNode>(program.graph.nodes[node].operation) ||
         is_read_by_pair_stage(program, node);
}

void place_stores(const Program& program, Kernel kernel, PairGeometry& geometry) {
  for (NodeId id = 0; id < program.graph.nodes.size(); ++id)
    geometry.keeps_ntk.push_back(kernel == Kernel::with_ntk && reads_ntk(program, id));
  std::vector<std::size_t> last_read(program.graph.nodes.size(), 0);
  for (std::size_t s = 0; s < program.steps.size(); ++s)
    for (const NodeId node : kept_nodes_read(program, program.steps[s])) last_read[node] = s;
  PlaceAllocator places;
  std::map<NodeId, Index> placed;  // node -> numbers
  geometry.store_offset.assign(program.graph.nodes.size(), 0);
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const NodeId written = node_written(program.steps[s]);
    if (program.kept[written] && geometry.layouts[written].size() > 0) {
      placed[written] = (geometry.keeps_ntk[written] ? 2 : 1) * padded(geometry.layouts[written].size());
      geometry.store_offset[written] = places.take(placed[written]);
      if (is_read_by_pair_stage(program, written) || geometry.layouts[written].is_matrix())
        geometry.matrix_size += placed[written];
    }
    std::erase_if(placed, [&](const auto& entry) {
      if (last_read[entry.first] > s) return false;
      places.give_back(geometry.store_offset[entry.first], entry.second);
      return true;
    });
  }
  geometry.store_size = places.end();
}

bool is_image(const Index3& sizes) { return sizes[0] == 1 && sizes[1] > 1; }

/// Images of one size whose arrays lie in strips, and a run that changes sizes by strides only and gathers no
/// entries from elsewhere: then every instruction has complementary offsets if the root has. Gaps grow with
/// strides, and beyond 2 joined planes take longer.
bool joins_complements(const Program& program, const Run& run, const std::vector<OffsetMap>& maps,
                       const PairGeometry& geometry) {
  const Index3& sizes = geometry.left_sizes[run.root];
  if (!is_image(sizes) || !geometry.uses_strips(run.root)) return false;
  for (std::size_t i = 0; i < run.instructions.size(); ++i) {
    const Instruction& instruction = run.instructions[i];
    const Operation& operation = program.graph.nodes[instruction.node].operation;
    const auto* affine = std::get_if<AffineNode>(&operation);
    const Index3 strides = affine != nullptr ? Window3(affine->window).stride : Index3{1, 1, 1};
    const bool strides_far = *std::max_element(strides.begin(), strides.end()) > 2;
    const bool gathers = std::holds_alternative<LocalAffineNode>(operation) || is_circular(operation);
    if ((gathers || strides_far) && !instruction.loads) return false;
    for (std::size_t k = 0; k < 3; ++k) {
      const Index size = maps[i].stride[k] * sizes[k];
      if (geometry.left_sizes[instruction.node][k] != size ||
          geometry.right_sizes[instruction.node][k] != size)
        return false;
    }
  }
  return true;
}

/// The demanded offsets along an axis, each alone.
std::vector<AxisOffsets> single_offsets(const std::vector<Index>& offsets) {
  std::vector<AxisOffsets> result;
  for (const Index offset : offsets) result.push_back({{offset, 0}, 1});
  return result;
}

/// Those between inputs of one size along the axis, complementary ones next to each other, or together. The
/// order is the same whatever is demanded and whether they are joined: so poolings of an input with itself
/// add up to its recorded variances bit for bit, although these demand fewer offsets.
std::vector<AxisOffsets> complementary_offsets(const std::vector<Index>& offsets, Index size, bool joined) {
  std::vector<AxisOffsets> result;
  const auto is_demanded = [&](Index offset) {
    return std::binary_search(offsets.begin(), offsets.end(), offset);
  };
  for (Index offset = 0; offset < size; ++offset) {
    const Index complement = offset - size;
    if (joined && is_demanded(offset) && is_demanded(complement)) {
      result.push_back({{offset, complement}, 2});
      continue;
    }
    if (is_demanded(offset)) result.push_back({{offset, 0}, 1});
    if (is_demanded(complement)) result.push_back({{complement, 0}, 1});
  }
  return result;
}

/// Rows of positions along the last axis.
Index row_count(const Shape& shape) {
  const Index3 sizes = three_axes(shape);
  return sizes[0] * sizes[1];
}

/// The largest plane of an instruction.
PlaneLayout largest_plane(const RunGeometry& run, std::size_t instruction, const Index3& left,
                          const Index3& right) {
  Index3 extent;
  for (std::size_t k = 0; k < 3; ++k)
    extent[k] = std::min(left[k], right[k]) + (run.complements ? run.gap(instruction, k) : 0);
  return {extent, run.guard};
}

RunGeometry make_run_geometry(const Program& program, const Run& run, const PairGeometry& geometry) {
  RunGeometry result;
  result.guard = run_guard(program, run);
  result.maps = offset_maps(program, run, geometry.left_sizes, geometry.right_sizes);
  result.complements = joins_complements(program, run, result.maps, geometry);
  const Index3 &left = geometry.left_sizes[run.root], &right = geometry.right_sizes[run.root];
  for (std::size_t k = 0; k < 3; ++k) {
    const std::vector<Index>& demanded = geometry.demanded[run.root].axis[k];
    result.offsets[k] = k > 0 && left == right ? complementary_offsets(demanded, left[k], result.complements)
                                               : single_offsets(demanded);
  }
  return result;
}

/// Enlarges capacities to what a run needs.
void make_room(const Run& run, const RunGeometry& of_run, PairGeometry& geometry) {
  for (std::size_t i = 0; i < run.instructions.size(); ++i) {
    const NodeId node = run.instructions[i].node;
    const PlaneLayout layout =
        largest_plane(of_run, i, geometry.left_sizes[node], geometry.right_sizes[node]);
    Index rows = std::max(row_count(geometry.shapes.left[node]), row_count(geometry.shapes.right[node]));
    if (of_run.complements) rows = 2 * rows + of_run.gap(i, 1);
    geometry.strip_capacity = std::max(geometry.strip_capacity, rows * layout.stride[1] + row_padding);
    geometry.row_capacity = std::max(
        geometry.row_capacity, padded(std::min(geometry.left_sizes[node][2], geometry.right_sizes[node][2])));
    // Windows read less than a vector on both sides of a row.
    geometry.plane_front = std::max(geometry.plane_front, padded(layout.margin()) + row_padding);
    geometry.plane_capacity =
        std::max(geometry.plane_capacity, padded(std::max(layout.length, stacked_numbers)) + row_padding);
  }
}

}  // namespace

std::vector<OffsetMap> offset_maps(const Program& program, const Run& run,
                                   const std::vector<Index3>& left_sizes,
                                   const std::vector<Index3>& right_sizes) {
  std::vector<OffsetMap> maps(run.instructions.size());
  std::vector<bool> is_read(run.instructions.size(), false);
  const auto read = [&](std::size_t instruction, const OffsetMap& map) {
    // The schedule promises it; a plane of another offset would be a wrong number without a word.
    if (is_read[instruction] && maps[instruction] != map)
      throw std::logic_error(fmt::format("kernel: {} is read at two offsets of one run",
                                         program.graph.nodes[run.instructions[instruction].node].path));
    maps[instruction] = map;
    is_read[instruction] = true;
  };
  for (std::size_t i = maps.size(); i-- > 0;) {
    const Node& node = program.graph.nodes[run.instructions[i].node];
    OffsetMap map = maps[i];
    if (const auto* affine = std::get_if<AffineNode>(&node.operation)) {
      const Window3 window(affine->window);
      const Index3 left_front = window.front(left_sizes[node.inputs[0]]),
                   right_front = window.front(right_sizes[node.inputs[0]]);
      for (std::size_t k = 0; k < 3; ++k) {
        map.stride[k] *= window.stride[k];
        map.shift[k] = window.stride[k] * map.shift[k] + left_front[k] - right_front[k];
      }
    }
    for (const std::size_t input : run.instructions[i].inputs) read(input, map);
  }
  return maps;
}

StoreLayout StoreLayout::matrix(const Index3& left, const Index3& right) {
  StoreLayout layout;
  layout.is_matrix_ = true;
  layout.left_ = left;
  layout.right_ = right;
  layout.size_ = product(left) * product(right);
  return layout;
}

StoreLayout StoreLayout::planes(const Index3& left, const Index3& right, const Offsets& offsets) {
  StoreLayout layout;
  layout.left_ = left;
  layout.right_ = right;
  for (std::size_t k = 0; k < 3; ++k) {
    layout.number_[k].assign(static_cast<std::size_t>(left[k] + right[k] - 1), -1);
    for (const Index offset : offsets.axis[k])
      layout.number_[k][static_cast<std::size_t>(offset + left[k] - 1)] = layout.count_[k]++;
  }
  for (const Index x : offsets.axis[0])
    for (const Index y : offsets.axis[1]) {
      const Index3 extent = Box(left, right, {x, y, 0}).extent;
      layout.first_row_.push_back(layout.rows_);
      layout.rows_ += extent[0] * extent[1];
    }
  for (const Index z : offsets.axis[2]) {
    const Index row_length = Box(left, right, {0, 0, z}).extent[2];
    layout.blocks_.push_back({layout.size_, row_length});
    layout.size_ += layout.rows_ * row_length;
  }
  return layout;
}

Index StoreLayout::entry(const Index3& a, const Index3& b) const {
  if (is_matrix_) return position_number(a, left_) * product(right_) + position_number(b, right_);
  const Box box(left_, right_, {b[0] - a[0], b[1] - a[1], b[2] - a[2]});
  const auto [start, step] = place(box);
  return start + (a[0] - box.origin[0]) * step[0] + (a[1] - box.origin[1]) * step[1] + a[2] - box.origin[2];
}

double PairGeometry::entries(NodeId node) const {
  double count = demanded[node].empty() ? 0 : 1;
  for (std::size_t k = 0; k < 3; ++k) {
    double along_axis = 0;
    for (const Index offset : demanded[node].axis[k])
      along_axis += static_cast<double>(
          std::max<Index>(0, AxisRange(left_sizes[node][k], right_sizes[node][k], offset).extent));
    count *= along_axis;
  }
  return count;
}

Index3 run_guard(const Program& program, const Run& run) {
  Index3 guard{0, 0, 0};
  for (const Instruction& instruction : run.instructions) {
    const auto* affine = std::get_if<AffineNode>(&program.graph.nodes[instruction.node].operation);
    if (affine == nullptr || instruction.loads) continue;
    const Window3 window(affine->window);
    if (window.padding != Padding::same) continue;
    for (std::size_t k = 0; k < 3; ++k) guard[k] = std::max(guard[k], window.size[k] / 2);
  }
  return guard;
}

PairGeometry make_geometry(const Program& program, const Shape& left, const Shape& right, Purpose purpose,
                           Kernel kernel, bool demand_everything) {
  PairGeometry geometry;
  geometry.shapes = {node_shapes(program.graph, left), node_shapes(program.graph, right)};
  std::transform(geometry.shapes.left.begin(), geometry.shapes.left.end(),
                 std::back_inserter(geometry.left_sizes), three_axes);
  std::transform(geometry.shapes.right.begin(), geometry.shapes.right.end(),
                 std::back_inserter(geometry.right_sizes), three_axes);
  geometry.demanded = demanded_offsets(program.graph, geometry.shapes, purpose);
  if (demand_everything)
    geometry.demanded = every_offset(program.graph, geometry.shapes, std::move(geometry.demanded));
  geometry.layouts.resize(program.graph.nodes.size());
  for (NodeId id = 0; id < program.graph.nodes.size(); ++id) {
    if (!program.kept[id] || geometry.demanded[id].empty()) continue;
    const Index3 &at_left = geometry.left_sizes[id], &at_right = geometry.right_sizes[id];
    geometry.layouts[id] = program.as_matrix[id]
                               ? StoreLayout::matrix(at_left, at_right)
                               : StoreLayout::planes(at_left, at_right, geometry.demanded[id]);
  }
  place_stores(program, kernel, geometry);
  for (const Step& step : program.steps) {
    const auto* plane = std::get_if<PlaneStep>(&step);
    geometry.runs.push_back(plane == nullptr ? RunGeometry{}
                                             : make_run_geometry(program, plane->run, geometry));
    if (plane != nullptr) make_room(plane->run, geometry.runs.back(), geometry);
  }
  // The same place in two slots must not be a multiple of 4096 bytes apart: processors take a load for a
  // reader of a store that agrees with it in the last bits of the address, and wait.
  constexpr Index period = 512, distance = 64;
  while ((geometry.plane_front + geometry.plane_capacity + distance) % period < 2 * distance)
    geometry.plane_capacity += row_padding;
  return geometry;
}

}  // namespace widelimit
