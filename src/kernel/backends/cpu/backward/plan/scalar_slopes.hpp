#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "network/graph.hpp"
#include "widelimit/network/network.hpp"

namespace widelimit {

/// The derivatives of graph_scalars() with respect to a number of the network, with relative errors of 1e-11;
/// graph_of() lowers a network. Returns nothing if the number may change more than these scalars: its layer, or one
/// inside its layer, makes operations with numbers of their own (activations, attention, norms), or the graph itself
/// changes.
[[nodiscard]] std::optional<std::vector<double>> scalar_slopes(
    const Network& network, const std::string& number, const std::function<Graph(const Network&)>& graph_of);

}  // namespace widelimit
