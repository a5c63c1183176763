#pragma once

#include "kernel/plan/pair_geometry.hpp"

namespace widelimit {

/// True for runs between matrices of small graphs, or from one to a sum over all nodes: nothing in them depends on
/// offsets, so that the rows of a matrix go through them as they lie. Planes of 30 nodes are 15 numbers long on
/// average, and copies between them and matrices took a third of the time of a pair.
[[nodiscard]] bool runs_whole(const Program& program, const PairGeometry& geometry, const PlaneStep& step);

}  // namespace widelimit
