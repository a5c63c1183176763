#pragma once

#include <memory>

#include "layers/position_map.hpp"
#include "widelimit/network/pair_stage.hpp"

namespace widelimit::layers {

/// K' = M K M'^T, axis by axis: those of the left input from the first to the last, then those of the right one.
std::shared_ptr<const PairStage> position_map_stage(PositionMapPointer map);

}  // namespace widelimit::layers
