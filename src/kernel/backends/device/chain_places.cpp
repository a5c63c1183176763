#include "kernel/backends/device/chain_places.hpp"

#include <algorithm>

namespace widelimit {
namespace {

/// Whether complementary offsets of the root have complementary ones at every instruction: sizes change by strides
/// only, alike for both inputs.
bool complements(const Chain& chain, const PairGeometry& geometry, const ChainGeometry& of_chain,
                 std::size_t axis) {
  const Index size = geometry.left_sizes[chain.root][axis];
  for (std::size_t i = 0; i < chain.instructions.size(); ++i) {
    const OffsetMap& map = of_chain.maps[i];
    const NodeId node = chain.instructions[i].node;
    const Index expected = map.stride[axis] * size;
    if (map.shift[axis] != 0 || geometry.left_sizes[node][axis] != expected ||
        geometry.right_sizes[node][axis] != expected)
      return false;
  }
  return true;
}

bool same_sizes(const Chain& chain, const PairGeometry& geometry, const ChainGeometry& of_chain,
                std::size_t axis) {
  for (std::size_t i = 0; i < chain.instructions.size(); ++i) {
    const NodeId node = chain.instructions[i].node;
    if (of_chain.maps[i].shift[axis] != 0 ||
        geometry.left_sizes[node][axis] != geometry.right_sizes[node][axis])
      return false;
  }
  return true;
}

}  // namespace

ChainPlaces make_chain_places(const Program& program, const PlaneStep& step, const PairGeometry& geometry,
                              const ChainGeometry& of_chain) {
  const Chain& chain = step.chain;
  const bool flattens = reads_of(program.graph.nodes[step.target].operation) == Reads::equal_positions;
  const Offsets read = flattens ? Offsets::zero() : geometry.demanded[chain.root];
  ChainPlaces places;
  for (std::size_t k = 0; k < 3; ++k) {
    const std::vector<Index>& demanded = read.axis[k];
    const Index size = geometry.left_sizes[chain.root][k];
    const auto number = [](Index offset) { return static_cast<int>(offset); };
    const bool all = static_cast<Index>(demanded.size()) == 2 * size - 1;
    if (all && complements(chain, geometry, of_chain, k)) {
      places.whole[k] = true;
      for (Index offset = 0; offset < size; ++offset)
        places.offsets[k].push_back({number(offset), number(offset - size)});
      continue;
    }
    const bool only_zero = demanded.size() == 1 && demanded[0] == 0;
    places.whole[k] = only_zero && same_sizes(chain, geometry, of_chain, k);
    for (const Index offset : demanded) places.offsets[k].push_back({number(offset), number(offset)});
  }
  return places;
}

}  // namespace widelimit
