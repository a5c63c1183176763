#pragma once

#include <array>
#include <vector>

#include "kernel/plan/pair_geometry.hpp"

namespace widelimit {

/// The planes of a chain as a device goes through them. Along an axis that is `whole`, a plane has all positions of the
/// left input: it is that of offset 0, or that of two complementary offsets, of which the second one begins where the
/// first one ends.
struct ChainPlaces {
  struct Offset {
    int first;
    int second;  ///< Of the positions for which the first one leads out of the right input.
  };
  std::array<std::vector<Offset>, 3> offsets;  ///< Of the root, along every axis.
  std::array<bool, 3> whole{};

  [[nodiscard]] Index planes() const {
    return static_cast<Index>(offsets[0].size() * offsets[1].size() * offsets[2].size());
  }
};

/// The places that the step after a chain reads: a readout, or what is kept. More offsets of its root may be demanded:
/// by another reader of an input, or because everything is.
ChainPlaces make_chain_places(const Program& program, const PlaneStep& step, const PairGeometry& geometry,
                              const ChainGeometry& of_chain);

}  // namespace widelimit
