#pragma once

#include "kernel/plan/pair_geometry.hpp"

namespace widelimit {

/// True for chains between matrices of small graphs, or from such a matrix to a sum over all nodes. Nothing in them
/// depends on offsets, so that the rows of a matrix pass through them as they are stored. Planes of 30 nodes have 15
/// numbers on average, and copies between them and matrices would take a third of the time of a pair.
[[nodiscard]] bool runs_whole(const Program& program, const PairGeometry& geometry, const PlaneStep& step);

}  // namespace widelimit
