#pragma once

#include <memory>

#include "layers/common/position_map.hpp"
#include "widelimit/network/pair_stage.hpp"

namespace widelimit::layers {

/// The stage K' = M K M'^T, for inputs like one of this shape. Images with enough rows whose axes are mapped by few
/// entries each are mapped plane by plane (PlaneMapping). Others are mapped as matrices, axis by axis: the axes of
/// the left input from the first to the last, then those of the right input.
std::shared_ptr<const PairStage> position_map_stage(PositionMapPointer map, const Shape& input);

}  // namespace widelimit::layers
