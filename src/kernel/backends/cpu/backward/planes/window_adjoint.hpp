#pragma once

#include <array>
#include <vector>

#include "kernel/backends/cpu/planes/placed_plane.hpp"

namespace widelimit {

/// The windows of a convolution along one axis, between two dense planes (docs/engine.md): entry a of the plane after
/// it sums the entries first(a), ..., first(a) + taps - 1 of the plane before it, as far as they are there.
struct AxisWindows {
  Index taps;
  Index stride;
  Index first_of_all;  ///< first(0); may be negative.
  Index source;        ///< Entries before the convolution.
  Index target;        ///< Entries after it.

  [[nodiscard]] bool is_identity() const {
    return taps == 1 && stride == 1 && first_of_all == 0 && source == target;
  }
};

/// The windows of all axes, between planes of one piece; `left_front` is the padding before the left input.
[[nodiscard]] std::array<AxisWindows, 3> windows_between(const Window3& window, const Index3& left_front,
                                                         const PlacedPlane& source,
                                                         const PlacedPlane& target);

/// The transpose of sums over windows. Sums factor into sums along one axis after the other, and so does their
/// transpose, in reverse order.
template <typename Scalar>
class WindowAdjoint {
 public:
  /// source += what the entries of target spread over their windows.
  void spread(const std::array<AxisWindows, 3>& windows, const Scalar* target, Scalar* source);

 private:
  std::array<std::vector<Scalar>, 2> between_;
};

}  // namespace widelimit
