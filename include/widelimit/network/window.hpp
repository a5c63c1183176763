#pragma once

#include <vector>

#include "widelimit/network/shape.hpp"

namespace widelimit {

/// What a window sees beyond the border: zeros, with output size ceil(size / stride); nothing (windows that
/// do not fit are dropped); or the opposite border, with the output size of `same`.
enum class Padding { same, valid, circular };

/// A window moved over the spatial axes, with one entry for each axis. Empty sizes mean a single position (dense).
struct Window {
  std::vector<Index> sizes;    ///< >= 1
  std::vector<Index> strides;  ///< >= 1
  Padding padding = Padding::same;
  /// With `valid` padding, one entry for each axis or none: only positions from `begin` on count as the input, and, if
  /// `end` is not -1, only those before it.
  std::vector<Index> begin = {};
  std::vector<Index> end = {};

  friend bool operator==(const Window&, const Window&) = default;
};

}  // namespace widelimit
