#pragma once

#include <functional>
#include <optional>
#include <vector>

namespace widelimit {

/// A place on a line, in steps, with its weights in a difference of eighth order and in one of fourth order. If the
/// two differences disagree, neither means a derivative.
struct StencilPlace {
  double steps;
  double weight;
  double coarse_weight;
};
using Stencil = std::vector<StencilPlace>;

/// A central stencil around 0, or one from 0 to either side, whichever stays within the numbers' range:
/// `is_in_range(shift)` says whether a shift does. Returns nothing if none of them does.
[[nodiscard]] std::optional<Stencil> stencil_in_range(double step,
                                                      const std::function<bool(double)>& is_in_range);

}  // namespace widelimit
