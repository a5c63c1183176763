#pragma once

#include <string>
#include <vector>

#include "widelimit/index.hpp"

namespace widelimit {

/// The sizes of the spatial axes at some point of a network, channels excluded: {32, 32} for an image, {n}
/// for a sequence of n tokens, {} where there are no positions (vectors, or after a global pooling or
/// flatten).
using Shape = std::vector<Index>;

/// Number of positions d: the product of the sizes, 1 for no positions.
[[nodiscard]] inline Index position_count(const Shape& shape) {
  Index count = 1;
  for (const Index size : shape) count *= size;
  return count;
}

/// "32x32", or "no positions".
[[nodiscard]] std::string to_string(const Shape& shape);

}  // namespace widelimit
