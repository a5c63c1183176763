#pragma once

#include <vector>

#include "widelimit/network/shape.hpp"

namespace widelimit {

/// Positions that differ along the given axes only, group by group, each in row-major order: single positions without
/// axes, all of them with every axis. Throws ArgumentError for an axis that the shape does not have.
std::vector<std::vector<Index>> position_groups(const Shape& shape, const std::vector<Index>& axes);

}  // namespace widelimit
