#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>

#include "kernel/backends/device/chain_source.hpp"

/// Pieces of the kernels of chains that depend on their form.
namespace widelimit {

/// A path as a comment has it: names of users may end a line, or continue it.
[[nodiscard]] std::string in_comment(const std::string& path);

/// Declares the planes of all slots, of each share of a group.
[[nodiscard]] std::string local_planes(std::size_t slots, Index entries, Index beside, bool with_ntk);
/// The head of the loop of a share over its planes.
[[nodiscard]] std::string loop_of_share(Index planes, Index beside);

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

/// The axes of positions of the left input, and of the right one.
inline constexpr std::array<char, 3> left_axes{'x', 'y', 'z'}, right_axes{'u', 'v', 'w'};

/// Declares at<axis>, where the window at a position begins, and from<axis> and to<axis>, the positions that it sees in
/// both inputs. The planes have the offsets f<axis>0 and, where piece<axis> is true, f<axis>1.
[[nodiscard]] std::string seen_positions(std::size_t axis, const Window3& window, Index front, Index left,
                                         Index right);

/// A loop over the positions from..to of all axes in planes of a size: b is the place of one.
[[nodiscard]] std::string looped_positions(const Index3& size, const std::string& added);

/// Positions of a window that are written one by one at most.
inline constexpr Index most_unrolled = 32;

/// The positions of a window in planes of a size one by one, in the order of a loop: added(place) for each that lies
/// in from..to of all axes; the window begins at at0, at1, at2.
[[nodiscard]] std::string written_positions(const Index3& window, const Index3& size,
                                            const std::function<std::string(const std::string&)>& added);

}  // namespace widelimit
