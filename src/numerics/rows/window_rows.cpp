#include "numerics/rows/window_rows.hpp"

#include <algorithm>
#include <array>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numerics/rows/window_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "numerics/rows/lane_moves-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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

/// The source rows of a window.
template <typename Scalar>
struct WindowOfRows {
  const Scalar* first;
  std::ptrdiff_t slabs;
  std::ptrdiff_t rows;
};

template <typename Scalar>
struct WindowLoops {
  using D = hn::ScalableTag<Scalar>;
  using V = hn::Vec<D>;
  using Index = std::ptrdiff_t;

  /// What is known of a window when compiling; 0: not known. Small loops of known length save some per cent
  /// of a pooling.
  template <Index stride_, bool inside_, Index rows_ = 0, Index taps_ = 0, bool adds_ = false>
  struct Known {
    static constexpr Index stride = stride_;
    static constexpr bool inside = inside_;  ///< Windows stay in the source along the last axis.
    static constexpr Index rows = rows_;     ///< Of a single slab.
    static constexpr Index taps = taps_;     ///< Along the last axis.
    static constexpr bool adds = adds_;
  };

  template <class Known>
  static HWY_INLINE V sum_of_rows(const PlaneWindows& windows, const WindowOfRows<Scalar>& window,
                                  Index place) {
    const D d;
    const Scalar* row = window.first + place;
    V sum = hn::LoadU(d, row);
    if constexpr (Known::rows > 0) {
      for (Index b = 1; b < Known::rows; ++b)
        sum = hn::Add(sum, hn::LoadU(d, row + b * windows.source_step[1]));
    } else {
      for (Index a = 0; a < window.slabs; ++a)
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
      for (Index t = 0; t < taps; t += 2) {
        const V low = rows_at<Known>(windows, window, place + t);
        const V high = rows_at<Known>(windows, window, place + t + static_cast<Index>(hn::Lanes(d)));
        sum = hn::Add(sum, even_entries(d, low, high));
        if (t + 1 < taps) sum = hn::Add(sum, odd_entries(d, low, high));
      }
    }
    return sum;
  }

  template <class Known>
  static HWY_INLINE void sum_row(const PlaneWindows& windows, const WindowOfRows<Scalar>& window,
                                 Scalar* target) {
    const D d;
    for (Index k = 0; k < windows.target_extent[2]; k += static_cast<Index>(hn::Lanes(d))) {
      V sum = window_sum<Known>(windows, window, windows.first[2] + Known::stride * k);
      if constexpr (Known::adds) sum = hn::Add(hn::LoadU(d, target + k), sum);
      hn::StoreU(sum, d, target + k);
    }
  }

  /// Strides beyond 2, one entry after the other.
  static void sum_row_by_entries(const PlaneWindows& windows, const WindowOfRows<Scalar>& window,
                                 Scalar* target) {
    for (Index k = 0; k < windows.target_extent[2]; ++k) {
      const Clipped columns(windows, 2, k);
      if (!windows.adds) target[k] = 0;
      for (Index a = 0; a < window.slabs; ++a)
        for (Index b = 0; b < window.rows; ++b)
          for (Index c = columns.begin; c < columns.end; ++c)
            target[k] += window.first[a * windows.source_step[0] + b * windows.source_step[1] + c];
    }
  }

  /// Calls complete(window, target row) for every output row whose window has all rows of its first slab, and
  /// edge(...) for the others, unless they have none: nothing is added to these, or they become zero.
  template <class Complete, class Edge>
  static HWY_INLINE void for_each_row(const PlaneWindows& windows, const Scalar* source, Scalar* target,
                                      const Complete& complete, const Edge& edge) {
    const Index rows = windows.target_extent[1], stride = windows.stride[1], taps = windows.taps[1];
    const Index first = windows.first[1], room = windows.source_extent[1] - taps - first;
    const Index begin = std::min((std::max<Index>(-first, 0) + stride - 1) / stride, rows);
    const Index end = room < 0 ? begin : std::clamp(room / stride + 1, begin, rows);
    for (Index plane = 0; plane < windows.planes; ++plane)
      for (Index i = 0; i < windows.target_extent[0]; ++i) {
        const Clipped slabs(windows, 0, i);
        const Index slab_count = slabs.end - slabs.begin;
        const Scalar* slab = source + plane * windows.source_plane + slabs.begin * windows.source_step[0];
        Scalar* row = target + plane * windows.target_plane + i * windows.target_step[0];
        const auto at_edge = [&](Index j) HWY_ATTR {
          const Clipped clipped(windows, 1, j);
          if (slab_count > 0 && !clipped.empty())
            edge(WindowOfRows<Scalar>{slab + clipped.begin * windows.source_step[1], slab_count,
                                      clipped.end - clipped.begin},
                 row);
          else if (!windows.adds)
            std::fill_n(row, windows.target_extent[2], Scalar{0});
          row += windows.target_step[1];
        };
        const Index complete_begin = slab_count > 0 ? begin : rows,
                    complete_end = slab_count > 0 ? end : rows;
        for (Index j = 0; j < complete_begin; ++j) at_edge(j);
        const Scalar* from = slab + (first + stride * begin) * windows.source_step[1];
        for (Index j = complete_begin; j < complete_end; ++j) {
          complete(WindowOfRows<Scalar>{from, slab_count, taps}, row);
          from += stride * windows.source_step[1];
          row += windows.target_step[1];
        }
        for (Index j = complete_end; j < rows; ++j) at_edge(j);
      }
  }

  using Sum = void (*)(const PlaneWindows&, const Scalar*, Scalar*);

  template <Index stride, bool inside, bool adds>
  static void sum_any(const PlaneWindows& windows, const Scalar* source, Scalar* target) {
    const auto sum = [&](const WindowOfRows<Scalar>& window, Scalar* row)
                         HWY_ATTR { sum_row<Known<stride, inside, 0, 0, adds>>(windows, window, row); };
    for_each_row(windows, source, target, sum, sum);
  }

  /// Windows over single slabs. At the edges they have fewer rows.
  template <Index stride, bool inside, Index rows, Index taps, bool adds>
  static void sum_known(const PlaneWindows& windows, const Scalar* source, Scalar* target) {
    for_each_row(
        windows, source, target,
        [&](const WindowOfRows<Scalar>& window, Scalar* row)
            HWY_ATTR { sum_row<Known<stride, inside, rows, taps, adds>>(windows, window, row); },
        [&](const WindowOfRows<Scalar>& window, Scalar* row)
            HWY_ATTR { sum_row<Known<stride, inside, 0, taps, adds>>(windows, window, row); });
  }

  /// Windows of stride 2 along single rows: [taps - 1].
  template <bool inside>
  static constexpr std::array<Sum, 3> columns_only{sum_known<2, inside, 1, 1, false>,
                                                   sum_known<2, inside, 1, 2, false>,
                                                   sum_known<2, inside, 1, 3, false>};

  /// Sums of rows only: [rows - 1].
  template <bool adds>
  static constexpr std::array<Sum, 3> rows_only{
      sum_known<1, true, 1, 1, adds>, sum_known<1, true, 2, 1, adds>, sum_known<1, true, 3, 1, adds>};

  template <bool inside, bool adds>
  static Sum choose(const PlaneWindows& windows) {
    const auto row = static_cast<std::size_t>(windows.taps[1] - 1);
    const auto tap = static_cast<std::size_t>(windows.taps[2] - 1);
    const bool known = windows.taps[0] == 1 && row < 3 && tap < 3;
    if (windows.stride[2] == 1)
      return known && inside && tap == 0 ? rows_only<adds>[row] : sum_any<1, inside, adds>;
    return known && row == 0 && !adds ? columns_only<inside>[tap] : sum_any<2, inside, adds>;
  }

  static void sums(const PlaneWindows& windows, const Scalar* source, Scalar* target) {
    if (windows.stride[2] > 2) {
      const auto sum = [&](const WindowOfRows<Scalar>& window, Scalar* row) {
        sum_row_by_entries(windows, window, row);
      };
      return for_each_row(windows, source, target, sum, sum);
    }
    const Index last = windows.first[2] + windows.stride[2] * (windows.target_extent[2] - 1);
    const bool inside = windows.first[2] >= 0 && last + windows.taps[2] <= windows.source_extent[2];
    const Sum sum = inside ? (windows.adds ? choose<true, true>(windows) : choose<true, false>(windows))
                           : (windows.adds ? choose<false, true>(windows) : choose<false, false>(windows));
    sum(windows, source, target);
  }
};

void float_sums(const PlaneWindows& windows, const float* source, float* target) {
  WindowLoops<float>::sums(windows, source, target);
}
void double_sums(const PlaneWindows& windows, const double* source, double* target) {
  WindowLoops<double>::sums(windows, source, target);
}

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace widelimit::numerics {

HWY_EXPORT(float_sums);
HWY_EXPORT(double_sums);

template <>
void window_sums(const PlaneWindows& windows, const float* source, float* target) {
  HWY_DYNAMIC_DISPATCH(float_sums)(windows, source, target);
}

template <>
void window_sums(const PlaneWindows& windows, const double* source, double* target) {
  HWY_DYNAMIC_DISPATCH(double_sums)(windows, source, target);
}

}  // namespace widelimit::numerics
#endif  // HWY_ONCE
