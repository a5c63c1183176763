#pragma once

#include "network/graph.hpp"

namespace widelimit {

/// Throws NumericalError, naming the layer, for a variance or a factor of the graph that is not 0, but 0 or infinite in
/// Scalar. What becomes inaccurate only is found where variances are.
template <typename Scalar>
void check_constants(const Graph& graph);

}  // namespace widelimit
