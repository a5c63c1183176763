#include "kernel/backends/cpu/planes/plane_sizes.hpp"

#include <algorithm>

#include "kernel/backends/cpu/planes/plane_layout.hpp"
#include "kernel/backends/cpu/planes/strip_layout.hpp"
#include "kernel/backends/cpu/planes/whole_chains.hpp"
#include "kernel/vector_padding.hpp"

namespace widelimit {
namespace {

/// An upper bound for the planes of an instruction: offset 0 with the gaps of joined planes.
PlaneLayout largest_plane(const ChainGeometry& chain, std::size_t instruction, const Index3& left,
                          const Index3& right) {
  Index3 extent;
  for (std::size_t k = 0; k < 3; ++k) extent[k] = std::min(left[k], right[k]) + chain.gap(instruction, k);
  return {extent, chain.guard};
}

/// Enlarges the sizes to what a chain needs.
void make_room(const Chain& chain, const ChainGeometry& of_chain, const PairGeometry& geometry,
               PlaneSizes& sizes) {
  const auto enlarge = [](Index& size, Index least) { size = std::max(size, least); };
  for (std::size_t i = 0; i < chain.instructions.size(); ++i) {
    const Index3 &left = geometry.left_sizes[chain.instructions[i].node],
                 &right = geometry.right_sizes[chain.instructions[i].node];
    const PlaneLayout layout = largest_plane(of_chain, i, left, right);
    const Index rows = std::max(StripLayout(of_chain, i, left, Side::left).rows(),
                                StripLayout(of_chain, i, right, Side::right).rows());
    enlarge(sizes.strip, rows * layout.stride[1] + row_padding);
    enlarge(sizes.row, padded(std::min(left[2], right[2])));
    // Windows read up to a vector before and after a row.
    enlarge(sizes.front, padded(layout.margin()) + row_padding);
    enlarge(sizes.capacity, padded(std::max(layout.length, stacked_numbers)) + row_padding);
  }
}

}  // namespace

PlaneSizes plane_sizes(const Program& program, const PairGeometry& geometry) {
  PlaneSizes sizes;
  for (std::size_t s = 0; s < program.steps.size(); ++s)
    if (const auto* plane = std::get_if<PlaneStep>(&program.steps[s])) {
      make_room(plane->chain, geometry.chains[s], geometry, sizes);
      // Planes that run whole are small. The entries of others, which explain() also plans, may be beyond an index.
      if (!runs_whole(program, geometry, *plane)) continue;
      const Index entries =
          product(geometry.left_sizes[plane->chain.root]) * product(geometry.right_sizes[plane->chain.root]);
      sizes.capacity = std::max(sizes.capacity, padded(entries) + row_padding);
    }
  // The same place in two slots must not be a multiple of 4096 bytes apart. Processors take a load for the reader of
  // an earlier store if their addresses agree in the last 12 bits, and wait for it. 512 is that distance in doubles.
  constexpr Index period = 512, distance = 64;
  while ((sizes.slot() + distance) % period < 2 * distance) sizes.capacity += row_padding;
  return sizes;
}

}  // namespace widelimit
