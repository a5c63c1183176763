#include "kernel/plan/pair_geometry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "kernel/plan/primitives.hpp"

namespace widelimit {
namespace {

bool is_image(const Index3& sizes) { return sizes[0] == 1 && sizes[1] > 1; }

/// Whether planes of complementary offsets are joined. This takes images of one size whose arrays are cut into
/// strips, and a chain that changes sizes by strides only and gathers no entries from elsewhere: then every instruction
/// has complementary offsets if the root has. Joined planes have one slab, so no node of the chain may be a volume of
/// which a stride leaves one slab. Gaps grow with strides, and beyond stride 2 joined planes take longer than single
/// ones.
bool joins_complements(const Program& program, const Chain& chain, const std::vector<OffsetMap>& maps,
                       const PairGeometry& geometry) {
  const Index3& sizes = geometry.left_sizes[chain.root];
  if (!is_image(sizes) || !geometry.uses_strips(chain.root)) return false;
  for (std::size_t i = 0; i < chain.instructions.size(); ++i) {
    const Instruction& instruction = chain.instructions[i];
    const Operation& operation = program.graph.nodes[instruction.node].operation;
    const Window* window = shared_window(operation);
    const Index3 strides = window != nullptr ? Window3(*window).stride : Index3{1, 1, 1};
    const bool strides_far = *std::max_element(strides.begin(), strides.end()) > 2;
    const bool reads_kept = reads_of(operation) == Reads::kept_windows;
    if ((reads_kept || strides_far) && !instruction.loads) return false;
    if (!is_image(geometry.left_sizes[instruction.node])) return false;
    for (std::size_t k = 0; k < 3; ++k) {
      // Offsets stride * (delta - d) and stride * delta complement each other only along an axis of stride * d
      // positions.
      const Index size = maps[i].stride[k] * sizes[k];
      if (geometry.left_sizes[instruction.node][k] != size ||
          geometry.right_sizes[instruction.node][k] != size)
        return false;
    }
  }
  return true;
}

/// Every offset along an axis by itself.
std::vector<AxisOffsets> single_offsets(const std::vector<Index>& offsets) {
  std::vector<AxisOffsets> result;
  result.reserve(offsets.size());
  for (const Index offset : offsets) result.push_back({{offset, 0}, 1});
  return result;
}

/// The offsets between inputs of one size along an axis. Complementary ones follow each other, or are joined. The
/// order is the same whatever is demanded and whether they are joined, so that poolings of an input with itself add
/// up to its recorded variances bit for bit, although variances demand fewer offsets.
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

ChainGeometry make_chain_geometry(const Program& program, const Chain& chain, const PairGeometry& geometry) {
  ChainGeometry result;
  result.guard = chain_guard(program, chain);
  result.maps = offset_maps(program, chain, geometry.left_sizes, geometry.right_sizes);
  result.complements = joins_complements(program, chain, result.maps, geometry);
  const Index3 &left = geometry.left_sizes[chain.root], &right = geometry.right_sizes[chain.root];
  for (std::size_t k = 0; k < 3; ++k) {
    const std::vector<Index>& demanded = geometry.demanded[chain.root].axis[k];
    result.offsets[k] = k > 0 && left == right ? complementary_offsets(demanded, left[k], result.complements)
                                               : single_offsets(demanded);
  }
  return result;
}

}  // namespace

std::vector<OffsetMap> offset_maps(const Program& program, const Chain& chain,
                                   const std::vector<Index3>& left_sizes,
                                   const std::vector<Index3>& right_sizes) {
  std::vector<OffsetMap> maps(chain.instructions.size());
  std::vector<bool> is_read(chain.instructions.size(), false);
  const auto read = [&](std::size_t instruction, const OffsetMap& map) {
    // The schedule promises that this does not happen (Scheduler::mark_conflicting_ways()). If it did, planes of a
    // wrong offset would give wrong numbers silently.
    if (is_read[instruction] && maps[instruction] != map)
      throw std::logic_error(fmt::format("kernel: {} is read at two offsets of one chain",
                                         program.graph.nodes[chain.instructions[instruction].node].path));
    maps[instruction] = map;
    is_read[instruction] = true;
  };
  // Instructions come after those that they read. In reverse, the map of an instruction is known before it is passed
  // on to its inputs; the root, the last one, has the identity.
  for (std::size_t i = maps.size(); i-- > 0;) {
    const Node& node = program.graph.nodes[chain.instructions[i].node];
    OffsetMap map = maps[i];
    // Position a after a window reads stride * a - front + tap before it. The taps of both inputs are equal and
    // cancel in b - a, the fronts do not if the sizes differ.
    if (const Window* shared = shared_window(node.operation)) {
      const Window3 window(*shared);
      const Index3 left_front = window.front(left_sizes[node.inputs[0]]),
                   right_front = window.front(right_sizes[node.inputs[0]]);
      for (std::size_t k = 0; k < 3; ++k) {
        map.stride[k] *= window.stride[k];
        map.shift[k] = window.stride[k] * map.shift[k] + left_front[k] - right_front[k];
      }
    }
    for (const std::size_t input : chain.instructions[i].inputs) read(input, map);
  }
  return maps;
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

double readout_weight(const Graph& graph, const PairGeometry& geometry, NodeId readout) {
  const Node& node = graph.nodes[readout];
  const auto left = static_cast<double>(position_count(geometry.shapes.left[node.inputs[0]])),
             right = static_cast<double>(position_count(geometry.shapes.right[node.inputs[0]]));
  switch (std::get<ReadoutNode>(node.operation).kind) {
    case ReadoutKind::flatten:
      return 1 / left;
    case ReadoutKind::average:
      return 1 / (left * right);
    case ReadoutKind::sum:
      break;
  }
  return 1;
}

Index3 chain_guard(const Program& program, const Chain& chain) {
  Index3 guard{0, 0, 0};
  for (const Instruction& instruction : chain.instructions) {
    const Window* shared = shared_window(program.graph.nodes[instruction.node].operation);
    if (shared == nullptr || instruction.loads) continue;
    const Window3 window(*shared);
    if (window.padding != Padding::same) continue;
    // A window of size s reaches at most s / 2 positions beyond either end.
    for (std::size_t k = 0; k < 3; ++k) guard[k] = std::max(guard[k], window.size[k] / 2);
  }
  return guard;
}

PairGeometry make_geometry(const Program& program, const Shape& left, const Shape& right, Purpose purpose,
                           bool demand_everything) {
  PairGeometry geometry;
  geometry.shapes = {node_shapes(program.graph, left), node_shapes(program.graph, right)};
  std::transform(geometry.shapes.left.begin(), geometry.shapes.left.end(),
                 std::back_inserter(geometry.left_sizes), three_axes);
  std::transform(geometry.shapes.right.begin(), geometry.shapes.right.end(),
                 std::back_inserter(geometry.right_sizes), three_axes);
  geometry.demanded = demanded_offsets(program.graph, geometry.shapes, purpose);
  if (demand_everything)
    geometry.demanded = every_offset(program.graph, geometry.shapes, std::move(geometry.demanded));
  for (const Step& step : program.steps) {
    const auto* plane = std::get_if<PlaneStep>(&step);
    geometry.chains.push_back(plane == nullptr ? ChainGeometry{}
                                               : make_chain_geometry(program, plane->chain, geometry));
  }
  return geometry;
}

}  // namespace widelimit
