#pragma once

#include <functional>
#include <optional>
#include <vector>

namespace widelimit {

/// A place on a line, in steps, with its weights in a difference of eighth order and in one of fourth, which tells
/// whether both mean a derivative.
struct StencilPlace {
  double steps;
  double weight;
  double coarse_weight;
};
using Stencil = std::vector<StencilPlace>;

/// Around 0, or from 0 to one side, whatever `is_in_range(shift)` leaves room for; nothing where it leaves none.
[[nodiscard]] std::optional<Stencil> stencil_in_range(double step,
                                                      const std::function<bool(double)>& is_in_range);

}  // namespace widelimit
