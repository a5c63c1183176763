#pragma once

#include <functional>
#include <string>
#include <vector>

#include "widelimit/network/layer.hpp"

namespace widelimit::propagation {

/// A layer of a block that holds no others.
struct BlockLayer {
  /// "layers[0].branches[1].layers[2]"; repeated layers as "layers[0].times[1].layers[2]".
  std::string path;
  Layer layer;
  std::function<Layers(const Layers&)> replaced;  ///< The block with other layers in its place.
};

/// All of them, in the order in which they act; what is repeated stands as often as it is repeated.
[[nodiscard]] std::vector<BlockLayer> layers_of_block(const Layers& block);

}  // namespace widelimit::propagation
