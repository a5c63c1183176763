#pragma once

#include <memory>

#include "layers/position_map.hpp"
#include "widelimit/network/pair_stage.hpp"

namespace widelimit::layers {

/// K' = M K M'^T, for inputs like one of this shape. Images of some rows whose axes are mapped by few entries each are
/// mapped plane by plane (PlaneMapping), others as matrices, axis by axis: those of the left input from the first to
/// the last, then those of the right one.
std::shared_ptr<const PairStage> position_map_stage(PositionMapPointer map, const Shape& input);

}  // namespace widelimit::layers
