// Window sums along rows. Included once for every instruction set: the guard follows Highway's convention.
#if defined(WIDELIMIT_ROW_CONVOLUTIONS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef WIDELIMIT_ROW_CONVOLUTIONS_INL
#undef WIDELIMIT_ROW_CONVOLUTIONS_INL
#else
#define WIDELIMIT_ROW_CONVOLUTIONS_INL
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "numerics/rows/linear_rows.hpp"
#include "numerics/rows/moving_windows-inl.hpp"
#include "numerics/rows/row_loop-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// See LinearRows::convolve().
template <typename Scalar>
struct RowConvolutions {
  using D = hn::ScalableTag<Scalar>;
  using V = hn::Vec<D>;

  enum class Ntk { none, of_zeros, of_source };

  /// `known`: taps.count, if it is known when compiling, else 0.
  template <std::size_t known, class Block>
  static HWY_INLINE V tap_sum(D d, const Block& block, const Scalar* source, const Taps& taps) {
    const std::size_t count = known > 0 ? known : taps.count;
    V sum = block.load(d, source + taps.first);
    for (std::size_t t = 1; t < count; ++t)
      sum = hn::Add(sum, block.load(d, source + taps.first + static_cast<std::ptrdiff_t>(t) * taps.step));
    return sum;
  }

  template <std::size_t known>
  static void window_sum(const Scalar* source, const Taps& taps, Scalar* target, std::size_t size) {
    for_each_vector<Scalar>(
        size, [&](auto d, auto block) { block.store(d, tap_sum<known>(d, block, source, taps), target); });
  }

  /// Sums along all axes but the last; returns the row that holds them.
  static const Scalar* partial_sums(const Convolution& convolution, const Scalar* source,
                                    Scalar* const* scratch, std::size_t size) {
    for (std::size_t k = 0; k + 1 < convolution.axis_count; ++k) {
      const Taps& taps = convolution.axes[k];
      (taps.count == 3 ? window_sum<3> : window_sum<0>)(source, taps, scratch[k], size);
      // `source` goes from axis to axis: the sums along one axis are the input of the next.
      source = scratch[k];
    }
    return source;
  }

  /// The last axis: target[i] = start(i) + scale sum.
  template <std::size_t known, class Start>
  static HWY_INLINE void last_sum(const Convolution& convolution, const Scalar* source, Scalar* target,
                                  std::size_t size, const Start& start) {
    const Taps taps = convolution.axes[convolution.axis_count - 1];
    const auto scale = static_cast<Scalar>(convolution.scale);
    for_each_vector<Scalar>(size, [&](auto d, auto block) {
      const V sum = tap_sum<known>(d, block, source, taps);
      block.store(d, hn::MulAdd(hn::Set(d, scale), sum, start(d, block)), target);
    });
  }

  template <std::size_t known>
  static void convolve_by(const Convolution& convolution, const Scalar* source_nngp, const Scalar* source_ntk,
                          Scalar* const* scratch, Scalar* nngp, Scalar* ntk, std::size_t size) {
    const auto bias = static_cast<Scalar>(convolution.bias);
    // The ntk starts from the new nngp: T' = K' + scale sum T (docs/theory/kernel-recursion.md, section 2.1).
    last_sum<known>(convolution, partial_sums(convolution, source_nngp, scratch, size), nngp, size,
                    [bias](auto d, auto) { return hn::Set(d, bias); });
    if (ntk == nullptr) return;
    last_sum<known>(convolution, partial_sums(convolution, source_ntk, scratch, size), ntk, size,
                    [nngp](auto d, auto block) { return block.load(d, nngp); });
  }

#if WIDELIMIT_MOVES_LANES
  template <class Window, Ntk wanted>
  static void convolve_by_window(const Convolution& convolution, const Scalar* source_nngp,
                                 const Scalar* source_ntk, Scalar* nngp, Scalar* ntk, std::size_t size) {
    const D d;
    const V scale = hn::Set(d, static_cast<Scalar>(convolution.scale)),
            bias = hn::Set(d, static_cast<Scalar>(convolution.bias));
    Window window(source_nngp, convolution);
    // A second window runs through the ntk's source; without one it repeats the first, and its sums are not asked for.
    Window ntk_window(wanted == Ntk::of_source ? source_ntk : source_nngp, convolution);
    const auto count = static_cast<std::ptrdiff_t>(size);
    for (std::ptrdiff_t i = 0; i < count; i += vector_lanes<Scalar>) {
      const bool is_last = i + vector_lanes<Scalar> >= count;
      const V value = hn::MulAdd(scale, window.next(i, is_last), bias);
      hn::StoreU(value, d, nngp + i);
      if constexpr (wanted == Ntk::of_zeros) hn::StoreU(value, d, ntk + i);
      if constexpr (wanted == Ntk::of_source)
        hn::StoreU(hn::MulAdd(scale, ntk_window.next(i, is_last), value), d, ntk + i);
    }
  }

  template <class Window>
  static void convolve_window(const Convolution& convolution, const Scalar* source_nngp,
                              const Scalar* source_ntk, Scalar* nngp, Scalar* ntk, std::size_t size) {
    const auto by_window = ntk == nullptr          ? convolve_by_window<Window, Ntk::none>
                           : source_ntk == nullptr ? convolve_by_window<Window, Ntk::of_zeros>
                                                   : convolve_by_window<Window, Ntk::of_source>;
    by_window(convolution, source_nngp, source_ntk, nngp, ntk, size);
  }

  /// False, and nothing done, if there is no such kernel for the window.
  static bool convolve_in_registers(const Convolution& convolution, const Scalar* source_nngp,
                                    const Scalar* source_ntk, Scalar* nngp, Scalar* ntk, std::size_t size) {
    // The windows move whole vectors and have no form for a rest.
    if (size % vector_lanes<Scalar> != 0) return false;
    const bool is_3x3 = Window3x3<Scalar>::fits(convolution), is_9 = Window9<Scalar>::fits(convolution);
    if (is_3x3) convolve_window<Window3x3<Scalar>>(convolution, source_nngp, source_ntk, nngp, ntk, size);
    if (is_9) convolve_window<Window9<Scalar>>(convolution, source_nngp, source_ntk, nngp, ntk, size);
    return is_3x3 || is_9;
  }
#else
  static bool convolve_in_registers(const Convolution&, const Scalar*, const Scalar*, Scalar*, Scalar*,
                                    std::size_t) {
    return false;
  }
#endif

  static void convolve(const Convolution& convolution, const Scalar* source_nngp, const Scalar* source_ntk,
                       Scalar* const* scratch, Scalar* nngp, Scalar* ntk, std::size_t size) {
    if (convolve_in_registers(convolution, source_nngp, source_ntk, nngp, ntk, size)) return;
    // A source ntk of zeros leaves T' = K', so a copy does.
    if (ntk != nullptr && source_ntk == nullptr) {
      convolve(convolution, source_nngp, nullptr, scratch, nngp, nullptr, size);
      std::copy_n(nngp, size, ntk);
      return;
    }
    // Three taps are by far the most frequent filter, and have loops of known length.
    const bool three = convolution.axes[convolution.axis_count - 1].count == 3;
    (three ? convolve_by<3> : convolve_by<0>)(convolution, source_nngp, source_ntk, scratch, nngp, ntk, size);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#endif  // per target
