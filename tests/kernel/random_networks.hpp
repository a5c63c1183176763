#pragma once

#include <vector>

#include "widelimit/network/network.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit::testing {

/// A random network that is valid for inputs of all these shapes: convolutions of any filter, stride and
/// padding, circular ones wider than the input, pools, norms, activations, sums, products and concatenations
/// of branches with windows of their own, attention, dropout, a readout and layers after it. Equal seeds
/// give equal networks.
Network random_network(unsigned seed, const std::vector<Shape>& shapes);

Network random_network(unsigned seed, const Shape& shape);

/// The same for inputs that carry a graph each, with aggregations where the positions are still its nodes.
Network random_graph_network(unsigned seed, const std::vector<Shape>& shapes, bool directed);

/// random_network() with poolings that go around the border or divide by what their windows see, convolutions with
/// pads and dilations, and norms over any axes and of raw inputs: layers whose rules for masks differ. For inputs with
/// masks and without.
Network random_masked_network(unsigned seed, const std::vector<Shape>& shapes);

/// random_masked_network() with every nonlinearity, by formulas and by quadrature, kernels of distances, and attention
/// in both scalings. For inputs without masks.
Network random_device_network(unsigned seed, const std::vector<Shape>& shapes);

}  // namespace widelimit::testing
