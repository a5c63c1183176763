#pragma once

#include "network/graph.hpp"
#include "network/pulled_readout.hpp"

namespace widelimit {

/// Replaces readouts after 1/width attention, with nothing nonlinear in between, by functionals of the covariance
/// before it (pulled_readout.hpp). If the layers are linear down to the inputs, a FeatureNode replaces all of them.
/// Results agree up to rounding. The layers in between stay in the graph; those that nothing else reads are left to
/// reachable_part().
Graph pull_back_readouts(const Graph& graph, AttentionProducts products = AttentionProducts::shortened);

}  // namespace widelimit
