#include "numerics/rows/targets.hpp"
#include "numerics/rows/window_rows.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numerics/rows/window_convolutions.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "numerics/rows/window_loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {

template <typename Scalar>
typename WindowLoops<Scalar>::Sums choose_convolution(const PlaneWindows& windows) {
  using Loops = WindowLoops<Scalar>;
  /// The loop for a convolution of both kernels; window_sums.cpp chooses for a single kernel.
  constexpr Start start = Start::bias_and_nngp;
  const bool inside = are_inside(windows);
  if (windows.stride[2] > 2) return Loops::sums_by_entries;
  // A single tap along the last axis leaves sums of rows, which need no neighbouring entries.
  if (windows.stride[2] == 1 && windows.taps[2] == 1 && inside) return Loops::template rows_only<start>[0];
  if (windows.stride[2] == 1)
    return inside ? Loops::template any_sums<1, true, start> : Loops::template any_sums<1, false, start>;
  if (inside && are_small(windows)) {
    const auto rows = static_cast<std::size_t>(windows.taps[1]),
               taps = static_cast<std::size_t>(windows.taps[2]);
    return Loops::template strided_sums<start>[rows - 1][taps - 1];
  }
  return inside ? Loops::template any_sums<2, true, start> : Loops::template any_sums<2, false, start>;
}

template <typename Scalar>
void convolve(const PlaneWindows& windows, const PlaneSteps& steps, const KernelPair<const Scalar>& source,
              const KernelPair<Scalar>& target) {
  const typename WindowLoops<Scalar>::Work work{
      windows, steps, source.nngp, nullptr, target.nngp, source.ntk - source.nngp, target.ntk - target.nngp};
  WindowLoops<Scalar>::sum_windows(work, choose_convolution<Scalar>(windows));
}
void float_convolution(const PlaneWindows& windows, const PlaneSteps& steps,
                       const KernelPair<const float>& source, const KernelPair<float>& target) {
  convolve<float>(windows, steps, source, target);
}
void double_convolution(const PlaneWindows& windows, const PlaneSteps& steps,
                        const KernelPair<const double>& source, const KernelPair<double>& target) {
  convolve<double>(windows, steps, source, target);
}

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace widelimit::numerics {

HWY_EXPORT(float_convolution);
HWY_EXPORT(double_convolution);

template <>
void convolve_windows(const PlaneWindows& windows, const PlaneSteps& steps,
                      const KernelPair<const float>& source, const KernelPair<float>& target) {
  HWY_DYNAMIC_DISPATCH(float_convolution)(windows, steps, source, target);
}

template <>
void convolve_windows(const PlaneWindows& windows, const PlaneSteps& steps,
                      const KernelPair<const double>& source, const KernelPair<double>& target) {
  HWY_DYNAMIC_DISPATCH(double_convolution)(windows, steps, source, target);
}

}  // namespace widelimit::numerics
#endif  // HWY_ONCE
