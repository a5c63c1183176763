// Where windows lie in their source. Included once for every instruction set: the guard follows Highway's
// convention.
#if defined(WIDELIMIT_WINDOW_PLACES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef WIDELIMIT_WINDOW_PLACES_INL
#undef WIDELIMIT_WINDOW_PLACES_INL
#else
#define WIDELIMIT_WINDOW_PLACES_INL
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>

#include "numerics/rows/window_rows.hpp"

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {

/// The part of a window along one axis that lies in the source.
struct Clipped {
  std::ptrdiff_t begin;
  std::ptrdiff_t end;

  Clipped(const PlaneWindows& windows, std::size_t axis, std::ptrdiff_t i) {
    const std::ptrdiff_t first = windows.first[axis] + windows.stride[axis] * i;
    begin = std::max<std::ptrdiff_t>(first, 0);
    end = std::min(first + windows.taps[axis], windows.source_extent[axis]);
  }
  [[nodiscard]] bool empty() const { return begin >= end; }
};

/// Whether windows stay in the source and its guards along the last axis.
inline bool are_inside(const PlaneWindows& windows) {
  const std::ptrdiff_t last = windows.first[2] + windows.stride[2] * (windows.target_extent[2] - 1);
  return windows.first[2] >= -windows.source_guard &&
         last + windows.taps[2] <= windows.source_extent[2] + windows.source_guard;
}

/// Whether there are loops for windows of so many rows and taps.
inline bool are_small(const PlaneWindows& windows) {
  return windows.taps[0] == 1 && windows.taps[1] <= 3 && windows.taps[2] <= 3;
}

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#endif  // per target
