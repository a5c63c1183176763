#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "layers/common/axis_map.hpp"

namespace widelimit::layers {

/// A linear map over positions, with a map of its own along each axis.
class PositionMap {
 public:
  virtual ~PositionMap() = default;

  /// The maps of all axes, which may join axes of the input. Throws ArgumentError, saying what was expected, for a
  /// shape that the map does not fit.
  [[nodiscard]] virtual std::vector<AxisMap> axis_maps(const Shape& input) const = 0;

  /// The shape after the map: the rows of axis_maps(), unless the map says otherwise. Its errors are those of
  /// axis_maps().
  [[nodiscard]] virtual Shape output_shape(const Shape& input) const;
};

using PositionMapPointer = std::shared_ptr<const PositionMap>;

/// map(i) for every axis i of the input. Throws ArgumentError unless the input has `axes` axes, none of which is too
/// long. Errors of map(i) name the axis.
std::vector<AxisMap> axis_by_axis(const Shape& input, std::size_t axes,
                                  const std::function<AxisMap(std::size_t)>& map);

}  // namespace widelimit::layers
