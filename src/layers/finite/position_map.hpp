#pragma once

#include "layers/common/position_map.hpp"
#include "widelimit/network/finite_layer.hpp"

namespace widelimit::finite {

/// What a map of inputs with one axis leaves: positions, or a vector (a map that chooses one position).
enum class OneAxisLeaves { positions, vectors };

/// y = M x, channel by channel. Its make_*() throw ArgumentError if the map does not fit.
CounterpartPointer position_map_counterpart(layers::PositionMapPointer map,
                                            OneAxisLeaves one_axis = OneAxisLeaves::positions);

/// The map followed by a convolution, which `convolution` makes for the positions that the map leaves, and that by the
/// map `behind` unless it is null.
CounterpartPointer mapped_convolution_counterpart(layers::PositionMapPointer map,
                                                  CounterpartPointer convolution,
                                                  layers::PositionMapPointer behind);

}  // namespace widelimit::finite
