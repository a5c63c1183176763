#pragma once

#include "network/graph.hpp"
#include "network/lowering.hpp"

namespace widelimit {

/// Whether readouts are pulled back through linear layers, with leading outputs (leading_outputs.hpp) or exactly, or
/// every layer stays a node.
enum class Readouts { pulled_back, pulled_back_exactly, as_written };

/// Lowers a network and replaces readouts after 1/width attention, with nothing nonlinear in between, by functionals of
/// the covariance before it (pulled_readout.hpp). If the layers are linear down to the inputs, a FeatureNode replaces
/// all of them. Results agree up to rounding. Throws NetworkError.
Graph lower_with_readouts(const Network& network, const Shape& input, const Replicate& replicate = {},
                          const InputTraits& traits = {}, Readouts readouts = Readouts::pulled_back);

}  // namespace widelimit
