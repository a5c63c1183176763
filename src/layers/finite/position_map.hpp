#pragma once

#include "layers/position_map.hpp"
#include "widelimit/network/finite_layer.hpp"

namespace widelimit::finite {

/// What the map of inputs with one axis leaves.
enum class OneAxisLeaves { positions, vectors };

/// y = M x, channel by channel. make_*() throws ArgumentError if the map does not fit.
CounterpartPointer position_map_counterpart(layers::PositionMapPointer map,
                                            OneAxisLeaves one_axis = OneAxisLeaves::positions);

/// The map, and after it a convolution of its own: `convolution` makes that for the positions that the map leaves.
CounterpartPointer mapped_convolution_counterpart(layers::PositionMapPointer map,
                                                  CounterpartPointer convolution);

}  // namespace widelimit::finite
