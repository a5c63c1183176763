#include "layers/common/position_map.hpp"

#include <fmt/format.h>

#include "network/window.hpp"
#include "widelimit/error.hpp"

namespace widelimit::layers {
namespace {

void require_axes(const Shape& input, std::size_t axes) {
  if (input.size() != axes)
    throw ArgumentError(fmt::format("expected inputs with {} spatial {}, got {}", axes,
                                    axes == 1 ? "axis" : "axes", axes_text(input)));
}

}  // namespace

Shape PositionMap::output_shape(const Shape& input) const {
  Shape shape;
  for (const AxisMap& map : axis_maps(input)) shape.push_back(map.rows());
  return shape;
}

std::vector<AxisMap> axis_by_axis(const Shape& input, std::size_t axes,
                                  const std::function<AxisMap(std::size_t)>& map) {
  require_axes(input, axes);
  std::vector<AxisMap> maps;
  for (std::size_t i = 0; i < axes; ++i) {
    try {
      require_axis_length(input[i]);
      maps.push_back(map(i));
    } catch (const ArgumentError& error) {
      throw ArgumentError(fmt::format("axis {}: {}", i, error.what()));
    }
  }
  return maps;
}

}  // namespace widelimit::layers
