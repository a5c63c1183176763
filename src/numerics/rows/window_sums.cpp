#include "numerics/rows/targets.hpp"
#include "numerics/rows/window_rows.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numerics/rows/window_sums.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "numerics/rows/window_loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {

/// Sums that begin with the bias: all windows of convolutions without ntk, and of poolings.
template <typename Scalar>
typename WindowLoops<Scalar>::Sums choose_for_bias(const PlaneWindows& windows) {
  using Loops = WindowLoops<Scalar>;
  const auto rows = static_cast<std::size_t>(windows.taps[1]),
             taps = static_cast<std::size_t>(windows.taps[2]);
  const bool inside = are_inside(windows), known = inside && are_small(windows);
  if (windows.stride[2] > 2) return Loops::sums_by_entries;
  if (windows.stride[2] == 1) {
    if (inside && taps == 1) return Loops::template rows_only<Start::bias>[known ? rows : 0];
    return inside ? Loops::template any_sums<1, true, Start::bias>
                  : Loops::template any_sums<1, false, Start::bias>;
  }
  if (known) return Loops::template strided_sums<Start::bias>[rows - 1][taps - 1];
  return inside ? Loops::template any_sums<2, true, Start::bias>
                : Loops::template any_sums<2, false, Start::bias>;
}

/// Sums that are added to numbers: mostly sums of rows, by poolings.
template <typename Scalar>
typename WindowLoops<Scalar>::Sums choose_for_numbers(const PlaneWindows& windows) {
  using Loops = WindowLoops<Scalar>;
  const auto rows = static_cast<std::size_t>(windows.taps[1]);
  const bool inside = are_inside(windows);
  if (windows.stride[2] > 2) return Loops::sums_by_entries;
  if (windows.stride[2] > 1)
    return inside ? Loops::template any_sums<2, true, Start::numbers>
                  : Loops::template any_sums<2, false, Start::numbers>;
  if (inside && windows.taps[2] == 1)
    return Loops::template rows_only<Start::numbers>[are_small(windows) ? rows : 0];
  return inside ? Loops::template any_sums<1, true, Start::numbers>
                : Loops::template any_sums<1, false, Start::numbers>;
}

template <typename Scalar>
void sum(const PlaneWindows& windows, const PlaneSteps& steps, const Scalar* source, const Scalar* start,
         Scalar* target) {
  const typename WindowLoops<Scalar>::Work work{windows, steps, source, start, target};
  const auto choose = start != nullptr ? choose_for_numbers<Scalar> : choose_for_bias<Scalar>;
  WindowLoops<Scalar>::sum_windows(work, choose(windows));
}

void float_sums(const PlaneWindows& windows, const PlaneSteps& steps, const float* source, const float* start,
                float* target) {
  sum(windows, steps, source, start, target);
}
void double_sums(const PlaneWindows& windows, const PlaneSteps& steps, const double* source,
                 const double* start, double* target) {
  sum(windows, steps, source, start, target);
}

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace widelimit::numerics {

HWY_EXPORT(float_sums);
HWY_EXPORT(double_sums);

template <>
void window_sums(const PlaneWindows& windows, const PlaneSteps& steps, const float* source,
                 const float* start, float* target) {
  HWY_DYNAMIC_DISPATCH(float_sums)(windows, steps, source, start, target);
}

template <>
void window_sums(const PlaneWindows& windows, const PlaneSteps& steps, const double* source,
                 const double* start, double* target) {
  HWY_DYNAMIC_DISPATCH(double_sums)(windows, steps, source, start, target);
}

}  // namespace widelimit::numerics
#endif  // HWY_ONCE
