#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "layers/axis_map.hpp"

namespace widelimit::layers {

/// A linear map over positions: along each axis one of its own.
class PositionMap {
 public:
  virtual ~PositionMap() = default;

  /// The axes as the map sees them. Throws ArgumentError, saying what was expected, for a shape that it does not fit.
  [[nodiscard]] virtual std::vector<AxisMap> axis_maps(const Shape& input) const = 0;

  /// Shape after the map: the rows of axis_maps() unless the map says otherwise. Errors as axis_maps().
  [[nodiscard]] virtual Shape output_shape(const Shape& input) const;
};

using PositionMapPointer = std::shared_ptr<const PositionMap>;

/// map(i) for every axis i of the input. Throws ArgumentError unless it has so many axes, none too long; errors of
/// map(i) name the axis.
std::vector<AxisMap> axis_by_axis(const Shape& input, std::size_t axes,
                                  const std::function<AxisMap(std::size_t)>& map);

}  // namespace widelimit::layers
