// Vectors of entries of window sums. Included once for every instruction set: the guard
// follows Highway's convention.
#if defined(WIDELIMIT_WINDOW_VECTORS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef WIDELIMIT_WINDOW_VECTORS_INL
#undef WIDELIMIT_WINDOW_VECTORS_INL
#else
#define WIDELIMIT_WINDOW_VECTORS_INL
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <type_traits>

#include "numerics/rows/lane_moves-inl.hpp"
#include "numerics/rows/window_parts.hpp"
#include "numerics/rows/window_rows.hpp"

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Calls body(window, target) for each.
template <typename Scalar, class Body>
HWY_INLINE void for_each(WindowRows<Scalar> rows, const Body& body) {
  for (std::ptrdiff_t j = 0; j < rows.count; ++j) {
    body(rows.window, rows.target);
    rows.window.first += rows.window_step;
    rows.target.first += rows.target_step;
    if (rows.target.start != nullptr) rows.target.start += rows.target_step;
  }
}

/// Sums for vectors of type D of one row of the target, or of many.
template <class D>
struct WindowVectors {
  using Scalar = hn::TFromD<D>;
  using V = hn::Vec<D>;
  using Index = std::ptrdiff_t;
  using Rows = WindowRows<Scalar>;

  /// A vector of every row, from entry k on.
  template <class Known>
  static HWY_INLINE void sum_rows(const PlaneWindows& windows, const Rows& rows, Index k) {
    const Index place = windows.first[2] + Known::stride * k;
#if WIDELIMIT_MOVES_LANES
    constexpr bool is_whole = std::is_same_v<D, hn::ScalableTag<Scalar>>;
    if constexpr (is_whole && Known::stride == 2 && Known::taps == 3 && Known::rows > 0)
      return sum_vectors_of_three<Known>(windows, rows, k, place);
#endif
    if constexpr (Known::stride == 1 && Known::taps == 1) return sum_vectors_of_one<Known>(windows, rows, k);
    for_each(rows, [&](const WindowOfRows<Scalar>& window, const TargetRow<Scalar>& target) HWY_ATTR {
      put<Known>(target, window, k, [&](const WindowOfRows<Scalar>& of) HWY_ATTR {
        return window_sum<Known>(windows, of, place);
      });
    });
  }

  template <class Known>
  static HWY_INLINE V sum_of_rows(const PlaneWindows& windows, const WindowOfRows<Scalar>& window,
                                  Index place) {
    const D d;
    const Scalar* row = window.first + place;
    V sum = hn::LoadU(d, row);
    // A slab count of 1 is implied: known windows lie in a single slab.
    if constexpr (Known::rows > 0) {
      for (Index b = 1; b < Known::rows; ++b)
        sum = hn::Add(sum, hn::LoadU(d, row + b * windows.source_step[1]));
    } else {
      for (Index a = 0; a < window.slabs; ++a)
        // The first row of the first slab is loaded above already.
        for (Index b = a == 0 ? 1 : 0; b < window.rows; ++b)
          sum = hn::Add(sum, hn::LoadU(d, row + a * windows.source_step[0] + b * windows.source_step[1]));
    }
    return sum;
  }

  /// The sum of all rows of a window at entries place, place + 1, ..., zero outside of the source.
  template <class Known>
  static HWY_INLINE V rows_at(const PlaneWindows& windows, const WindowOfRows<Scalar>& window, Index place) {
    const D d;
    const Index extent = windows.source_extent[2];
    const bool in_front = !Known::inside && place + static_cast<Index>(hn::Lanes(d)) <= 0;
    if (place >= extent || in_front) return hn::Zero(d);
    const V sum = sum_of_rows<Known>(windows, window, place);
    if (Known::inside) return sum;
    // Entry numbers are compared as Scalars: they are small integers, which float holds exactly.
    const V entry = hn::Iota(d, static_cast<Scalar>(place));
    const auto exists =
        hn::And(hn::Ge(entry, hn::Zero(d)), hn::Lt(entry, hn::Set(d, static_cast<Scalar>(extent))));
    return hn::IfThenElseZero(exists, sum);
  }

  /// Sums over the taps of the last axis for a vector of output entries that begins at place.
  template <class Known>
  static HWY_INLINE V window_sum(const PlaneWindows& windows, const WindowOfRows<Scalar>& window,
                                 Index place) {
    const D d;
    const Index taps = Known::taps > 0 ? Known::taps : windows.taps[2];
    V sum = hn::Zero(d);
    if constexpr (Known::stride == 1) {
      for (Index t = 0; t < taps; ++t) sum = hn::Add(sum, rows_at<Known>(windows, window, place + t));
    } else {
      // A vector of output entries takes every second entry of two vectors, for two taps at a time.
      for (Index t = 0; t < taps; t += 2) {
        const V low = rows_at<Known>(windows, window, place + t);
        const V high = rows_at<Known>(windows, window, place + t + static_cast<Index>(hn::Lanes(d)));
        sum = hn::Add(sum, even_entries(d, low, high));
        if (t + 1 < taps) sum = hn::Add(sum, odd_entries(d, low, high));
      }
    }
    return sum;
  }

  /// Writes a vector of a target row, or of both kernels'.
  template <class Known, class SumOf>
  static HWY_INLINE void put(const TargetRow<Scalar>& target, const WindowOfRows<Scalar>& window, Index k,
                             const SumOf& sum_of) {
    const D d;
    const V scale = hn::Set(d, target.scale);
    const V start = Known::start == Start::numbers ? hn::LoadU(d, target.start + k) : hn::Set(d, target.bias);
    const V value = hn::MulAdd(scale, sum_of(window), start);
    hn::StoreU(value, d, target.first + k);
    if constexpr (Known::start == Start::bias_and_nngp) {
      WindowOfRows<Scalar> ntk_window = window;
      ntk_window.first += window.ntk;
      hn::StoreU(hn::MulAdd(scale, sum_of(ntk_window), value), d, target.first + target.ntk + k);
    }
  }

  /// One tap of stride 1: sums of rows, without the gap.
  template <class Known>
  static HWY_INLINE void sum_vectors_of_one(const PlaneWindows& windows, const Rows& rows, Index k) {
    const D d;
    const auto lanes = static_cast<Index>(hn::Lanes(d));
    const Index in_front = windows.gap_size > 0 ? windows.gap_at - k : lanes;
    // A gap is skipped by reading gap_size further on from entry gap_at on.
    const Index place = windows.first[2] + k + (in_front > 0 ? 0 : windows.gap_size);
    if (in_front <= 0 || in_front >= lanes)
      return for_each(rows,
                      [&](const WindowOfRows<Scalar>& window, const TargetRow<Scalar>& target) HWY_ATTR {
                        put<Known>(target, window, k, [&](const WindowOfRows<Scalar>& of) HWY_ATTR {
                          return sum_of_rows<Known>(windows, of, place);
                        });
                      });
    // The gap begins within this vector: both sides are read and joined.
    const auto is_in_front = hn::FirstN(d, static_cast<std::size_t>(in_front));
    for_each(rows, [&](const WindowOfRows<Scalar>& window, const TargetRow<Scalar>& target) HWY_ATTR {
      put<Known>(target, window, k, [&](const WindowOfRows<Scalar>& of) HWY_ATTR {
        const V front = sum_of_rows<Known>(windows, of, place),
                behind = sum_of_rows<Known>(windows, of, place + windows.gap_size);
        return hn::IfThenElse(is_in_front, front, behind);
      });
    });
  }

#if WIDELIMIT_MOVES_LANES
  /// Three taps of stride 2: the third ones are the first ones of the next entries, so that every source row
  /// is read once. `vectors` of the three that this takes are not wholly after the source.
  template <class Known, int vectors>
  static HWY_INLINE void sum_vectors_of_three(const PlaneWindows& windows, const Rows& rows, Index k,
                                              Index place) {
    const D d;
    const auto lanes = static_cast<Index>(hn::Lanes(d));
    for_each(rows, [&](const WindowOfRows<Scalar>& window, const TargetRow<Scalar>& target) HWY_ATTR {
      put<Known>(target, window, k, [&](const WindowOfRows<Scalar>& of) HWY_ATTR {
        const V zero = hn::Zero(d);
        const V low = vectors > 0 ? sum_of_rows<Known>(windows, of, place) : zero;
        const V high = vectors > 1 ? sum_of_rows<Known>(windows, of, place + lanes) : zero;
        const V next = vectors > 2 ? sum_of_rows<Known>(windows, of, place + 2 * lanes) : zero;
        // Taps 0 and 1 are the even and odd entries; tap 2 of an entry is tap 0 of the next one.
        const V even = even_entries(d, low, high), odd = odd_entries(d, low, high);
        const V next_even = vectors > 2 ? even_entries(d, next, zero) : zero;
        return hn::Add(hn::Add(even, odd), entries_from<1>(d, even, next_even));
      });
    });
  }

  template <class Known>
  static HWY_INLINE void sum_vectors_of_three(const PlaneWindows& windows, const Rows& rows, Index k,
                                              Index place) {
    const auto lanes = static_cast<Index>(hn::Lanes(D()));
    const Index left_over = windows.source_extent[2] - place;
    if (left_over > 2 * lanes)
      sum_vectors_of_three<Known, 3>(windows, rows, k, place);
    else if (left_over > lanes)
      sum_vectors_of_three<Known, 2>(windows, rows, k, place);
    else if (left_over > 0)
      sum_vectors_of_three<Known, 1>(windows, rows, k, place);
    else
      sum_vectors_of_three<Known, 0>(windows, rows, k, place);
  }
#endif
};

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#endif  // per target
