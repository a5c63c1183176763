#pragma once

#include <vector>

#include "widelimit/network/shape.hpp"

namespace widelimit {

/// Groups of positions that differ along the given axes only. Groups and the positions within them are in row-major
/// order. Without axes every position is a group of its own; with all axes there is one group. Throws ArgumentError
/// for an axis that the shape does not have.
std::vector<std::vector<Index>> position_groups(const Shape& shape, const std::vector<Index>& axes);

}  // namespace widelimit
