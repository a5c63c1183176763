#pragma once

#include <functional>
#include <string>

#include "kernel/backends/device/chain_source.hpp"

/// Pieces of the kernels of chains that depend on their form.
namespace widelimit {

/// Lanes of a plane that one item adds up.
[[nodiscard]] Index turns_of(const ChainSourceOptions& options);

/// Declares the sums over all planes of each lane of an item.
[[nodiscard]] std::string sums_of_turns(Index turns);
/// Declares the sums over one plane.
[[nodiscard]] std::string parts_of_turns(Index turns);
/// Adds these to those.
[[nodiscard]] std::string added_parts(Index turns, bool with_ntk);

/// The end of a chain: each share leaves the sums of its lanes, which are added up one after the other.
[[nodiscard]] std::string sums_of_shares(const ChainSourceOptions& options);

/// Positions of a window that are written one by one at most.
inline constexpr Index most_unrolled = 32;

/// The positions of a window in planes of a size one by one, in the order of a loop: added(place) for each that lies
/// in from..to of all axes; the window begins at at0, at1, at2.
[[nodiscard]] std::string written_positions(const Index3& window, const Index3& size,
                                            const std::function<std::string(const std::string&)>& added);

}  // namespace widelimit
