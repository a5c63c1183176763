#pragma once

#include <memory>
#include <string>

#include "widelimit/finite/finite_layer.hpp"
#include "widelimit/network/layer.hpp"

namespace widelimit::finite {

/// True for the kinds whose output channels come out of a weight matrix.
bool chooses_channels(const Layer& layer);

/// The finite form of a layer that is not made of other layers and is not attention; null if there is none.
/// Throws ArgumentError if the layer does not fit the site.
template <typename Scalar>
std::unique_ptr<FiniteLayer<Scalar>> make_simple_layer(const Layer& layer, const Site& site);

}  // namespace widelimit::finite
