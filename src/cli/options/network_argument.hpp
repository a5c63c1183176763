#pragma once

#include <optional>
#include <string>

#include "widelimit/kernel/inputs.hpp"
#include "widelimit/network/network.hpp"

namespace widelimit::cli {

/// A network as the user writes it: the path of a network file, or NAME[:OPTION=VALUE,...] of a named network, of
/// which a first value without OPTION= is that of its first option. What ends in ".json" or holds a "/" is a path.
/// `axes`, the number of spatial axes of the inputs, and `depth` are the values of the options of these names where the
/// argument gives none. Throws ArgumentError, or the errors of read_network().
[[nodiscard]] Network network_from_argument(const std::string& argument, std::size_t axes,
                                            std::optional<Index> depth = std::nullopt);

/// The same for inputs, of which axes and the length of kernels of distances (median_distance()) are taken.
template <typename Scalar>
[[nodiscard]] Network network_for_inputs(const std::string& argument, const Inputs<Scalar>& x,
                                         std::optional<Index> depth = std::nullopt);

/// What the help says about it.
inline constexpr const char* network_argument_help =
    "Network file, or NAME[:OPTION=VALUE,...] of a named network, e.g. struct:depth=4, or matern:1.5 as a "
    "baseline (see widelimit networks); auto: for tables, chosen among nine by targets left out";

}  // namespace widelimit::cli
