#pragma once

#include "widelimit/network/network.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit::testing {

/// A random valid network for inputs of the shape: convolutions of any filter, stride and padding, pools,
/// norms, activations, sums, products, concatenations, attention, dropout, a readout and layers behind it.
/// Equal seeds give equal networks.
Network random_network(unsigned seed, const Shape& shape);

}  // namespace widelimit::testing
