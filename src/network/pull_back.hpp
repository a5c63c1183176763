#pragma once

#include "network/graph.hpp"

namespace widelimit {

/// Replaces readouts after 1/width attention, with nothing nonlinear in between, by functionals of the
/// covariance before it (pulled_readout.hpp). Results are the same up to rounding. The layers in
/// between, if nobody else reads them, are then no longer needed.
Graph pull_back_readouts(const Graph& graph);

}  // namespace widelimit
