#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernel/readouts/pull_back.hpp"
#include "network/graph.hpp"
#include "widelimit/network/network.hpp"

namespace widelimit {

/// The shapes of the inputs, all of one rank, each with the name of the first input that has it.
using NamedShapes = std::map<Shape, std::string>;

/// A network that was lowered for inputs of several shapes.
struct LoweredNetwork {
  Graph graph;
  /// The shapes after all nodes, [shape of the inputs][node]; those of the largest input come first.
  std::vector<std::vector<Shape>> shapes;
};

/// Throws NetworkError if the network cannot be applied to a shape, naming the input unless no shape would do.
[[nodiscard]] LoweredNetwork lower_for(const Network& network, const NamedShapes& shapes,
                                       const InputTraits& inputs, const Replicate& replicate = {},
                                       Readouts readouts = Readouts::pulled_back);

}  // namespace widelimit
