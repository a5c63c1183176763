#include "network/position_groups.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "network/window.hpp"
#include "widelimit/error.hpp"

namespace widelimit {

std::vector<std::vector<Index>> position_groups(const Shape& shape, const std::vector<Index>& axes) {
  Shape kept = shape;
  for (const Index axis : axes) {
    if (axis < 0 || axis >= static_cast<Index>(shape.size()))
      throw ArgumentError(fmt::format("expected inputs with an axis {}, got {}", axis, axes_text(shape)));
    kept[static_cast<std::size_t>(axis)] = 1;
  }
  std::vector<std::vector<Index>> groups(static_cast<std::size_t>(position_count(kept)));
  for (Index position = 0; position < position_count(shape); ++position) {
    // The number of a group is the row-major index of its position in `kept`. The axes of the group have size 1 there
    // and add nothing.
    Index group = 0, stride = 1, rest = position;
    for (std::size_t k = shape.size(); k-- > 0; rest /= shape[k]) {
      if (kept[k] == shape[k]) group += rest % shape[k] * stride;
      stride *= kept[k];
    }
    groups[static_cast<std::size_t>(group)].push_back(position);
  }
  return groups;
}

}  // namespace widelimit
