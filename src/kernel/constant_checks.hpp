#pragma once

#include "network/graph.hpp"

namespace widelimit {

/// Throws NumericalError, naming the layer, for a variance or a factor of the graph that is not 0 and leaves the range of
/// Scalar: computing with it would go on as if it were 0 or infinite.
template <typename Scalar>
void check_constants(const Graph& graph);

}  // namespace widelimit
