#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "widelimit/matrix.hpp"
#include "widelimit/network/shape.hpp"

/// Positions and the windows over them, for the naive kernel: one position at a time.
namespace widelimit::testing {

using Position = std::vector<Index>;

/// Row-major.
Position position_of(Index flat, const Shape& shape);

/// Which positions of an input count.
using NaiveMask = std::vector<bool>;

/// For every output position of a window, the input positions it covers, -1: outside, and the one in its middle,
/// or nearest to that.
struct Cover {
  Shape shape;
  std::vector<std::vector<Index>> members;
  std::vector<Index> middles;
};

Cover cover(const Shape& shape, const nlohmann::json& sizes, const nlohmann::json& layer);

/// After a window a position counts if the one in the window's middle does.
NaiveMask mask_after(const Cover& windows, const NaiveMask& before);

/// Positions that agree in all but the given axes, position by position.
std::vector<std::vector<Index>> groups_along(const Shape& shape, const std::vector<Index>& axes);

}  // namespace widelimit::testing
