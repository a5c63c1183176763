#pragma once

#include "network/graph.hpp"

namespace widelimit {

/// Throws NumericalError, naming the layer, for a variance or factor of the graph that is not 0 but becomes 0 or
/// infinite in Scalar. Constants that only lose digits there are found by the checks of variances.
template <typename Scalar>
void check_constants(const Graph& graph);

}  // namespace widelimit
