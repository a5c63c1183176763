#include "kernel/device/run_places.hpp"

#include <algorithm>
#include <variant>

namespace widelimit {
namespace {

/// Whether complementary offsets of the root have complementary ones at every instruction: sizes change by strides
/// only, alike for both inputs.
bool complements(const Run& run, const PairGeometry& geometry, const RunGeometry& of_run, std::size_t axis) {
  const Index size = geometry.left_sizes[run.root][axis];
  for (std::size_t i = 0; i < run.instructions.size(); ++i) {
    const OffsetMap& map = of_run.maps[i];
    const NodeId node = run.instructions[i].node;
    const Index expected = map.stride[axis] * size;
    if (map.shift[axis] != 0 || geometry.left_sizes[node][axis] != expected ||
        geometry.right_sizes[node][axis] != expected)
      return false;
  }
  return true;
}

bool same_sizes(const Run& run, const PairGeometry& geometry, const RunGeometry& of_run, std::size_t axis) {
  for (std::size_t i = 0; i < run.instructions.size(); ++i) {
    const NodeId node = run.instructions[i].node;
    if (of_run.maps[i].shift[axis] != 0 ||
        geometry.left_sizes[node][axis] != geometry.right_sizes[node][axis])
      return false;
  }
  return true;
}

}  // namespace

RunPlaces make_run_places(const Program& program, const PlaneStep& step, const PairGeometry& geometry,
                          const RunGeometry& of_run) {
  const Run& run = step.run;
  const auto* readout = std::get_if<ReadoutNode>(&program.graph.nodes[step.target].operation);
  const bool flattens = readout != nullptr && readout->kind == ReadoutKind::flatten;
  const Offsets read = flattens ? Offsets::zero() : geometry.demanded[run.root];
  RunPlaces places;
  for (std::size_t k = 0; k < 3; ++k) {
    const std::vector<Index>& demanded = read.axis[k];
    const Index size = geometry.left_sizes[run.root][k];
    const auto number = [](Index offset) { return static_cast<int>(offset); };
    const bool all = static_cast<Index>(demanded.size()) == 2 * size - 1;
    if (all && complements(run, geometry, of_run, k)) {
      places.whole[k] = true;
      for (Index offset = 0; offset < size; ++offset)
        places.offsets[k].push_back({number(offset), number(offset - size)});
      continue;
    }
    const bool only_zero = demanded.size() == 1 && demanded[0] == 0;
    places.whole[k] = only_zero && same_sizes(run, geometry, of_run, k);
    for (const Index offset : demanded) places.offsets[k].push_back({number(offset), number(offset)});
  }
  return places;
}

}  // namespace widelimit
