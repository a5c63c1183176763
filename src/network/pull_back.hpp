#pragma once

#include "network/graph.hpp"

namespace widelimit {

/// Replaces readouts behind 1/width attention, with nothing nonlinear in between, by functionals of the
/// covariance in front of it (pulled_readout.hpp). Results are the same up to rounding. The layers in
/// between, if nobody else reads them, are then no longer needed.
Graph pull_back_readouts(const Graph& graph);

}  // namespace widelimit
