#pragma once

#include <string>
#include <vector>

#include "widelimit/propagation/block_diagram.hpp"

namespace widelimit::cli {

/// What --vary asks for: PATH=FROM:TO:COUNT[:linear|log] of one or two numbers of the network. ArgumentError, naming
/// the option, for what is none, and as propagation::BlockVariation.
[[nodiscard]] propagation::BlockVariation variation_of(const Network& network,
                                                       const std::vector<std::string>& specs);

}  // namespace widelimit::cli
