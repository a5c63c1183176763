// Loops over the rows of planes whose windows are summed. Included once for every instruction set: the guard
// follows Highway's convention.
#if defined(WIDELIMIT_WINDOW_LOOPS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef WIDELIMIT_WINDOW_LOOPS_INL
#undef WIDELIMIT_WINDOW_LOOPS_INL
#else
#define WIDELIMIT_WINDOW_LOOPS_INL
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "numerics/rows/window_parts.hpp"
#include "numerics/rows/window_places-inl.hpp"
#include "numerics/rows/window_rows.hpp"
#include "numerics/rows/window_vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename Scalar>
struct WindowLoops {
  using D = hn::ScalableTag<Scalar>;
  using V = hn::Vec<D>;
  using Index = std::ptrdiff_t;
  using Rows = WindowRows<Scalar>;

  /// What the sums of all windows are made of.
  struct Work {
    const PlaneWindows& windows;
    const PlaneSteps& steps;
    const Scalar* source;
    const Scalar* start;
    Scalar* target;
    Index source_ntk = 0;  ///< How far the ntk is from source and target; 0: there is none.
    Index target_ntk = 0;
  };

  /// Neighbouring windows of one size, the first one's first row, and where their target rows begin.
  struct WindowSize {
    Index slabs;
    Index rows;
  };
  struct TargetSpan {
    Index begin;
    Index count;
  };

  static HWY_INLINE Rows rows_of(const Work& work, const Scalar* first, WindowSize size, TargetSpan span) {
    const PlaneWindows& windows = work.windows;
    return {{first, size.slabs, size.rows, work.source_ntk},
            {work.target + span.begin, work.start != nullptr ? work.start + span.begin : nullptr,
             static_cast<Scalar>(windows.scale), static_cast<Scalar>(windows.bias), work.target_ntk},
            windows.stride[1] * windows.source_step[1],
            windows.target_step[1],
            span.count};
  }

  /// One vector of every row, then the next: from the last one to the first, whose whole vectors then
  /// overwrite what others have left behind the row in front. A few entries at the end are a short vector,
  /// which costs less where it crosses cache lines.
  template <class Known>
  static void sum_rows(const Work& work, const Scalar* first, WindowSize size, TargetSpan span) {
    const PlaneWindows& windows = work.windows;
    const Rows rows = rows_of(work, first, size, span);
    using Short = hn::CappedTag<Scalar, 4>;
    const auto lanes = static_cast<Index>(hn::Lanes(D())), few = static_cast<Index>(hn::Lanes(Short()));
    // The first entry of the last vector of a row.
    Index k = (windows.target_extent[2] - 1) / lanes * lanes;
    if (few < lanes && windows.target_extent[2] - k <= few) {
      WindowVectors<Short>::template sum_rows<Known>(windows, rows, k);
      k -= lanes;
    }
    for (; k >= 0; k -= lanes) WindowVectors<D>::template sum_rows<Known>(windows, rows, k);
  }

  /// Strides beyond 2, one entry after the other.
  static void sum_rows_by_entries(const Work& work, const Scalar* first, WindowSize size, TargetSpan span) {
    const PlaneWindows& windows = work.windows;
    for_each(rows_of(work, first, size, span),
             [&](WindowOfRows<Scalar> window, TargetRow<Scalar> target) HWY_ATTR {
               sum_entries(windows, window, target);
               if (target.ntk == 0) return;
               window.first += window.ntk;
               // The ntk starts from the nngp that the first call has written.
               target.start = target.first;
               target.first += target.ntk;
               sum_entries(windows, window, target);
             });
  }

  static HWY_INLINE void sum_entries(const PlaneWindows& windows, const WindowOfRows<Scalar>& window,
                                     const TargetRow<Scalar>& target) {
    using Any = KnownWindow<0, false, Start::bias>;
    const D d;
    for (Index k = 0; k < windows.target_extent[2]; ++k) {
      const Clipped columns(windows, 2, k);
      V sums = hn::Zero(d);
      for (Index c = columns.begin; c < columns.end; c += static_cast<Index>(hn::Lanes(d))) {
        const auto in_window = hn::FirstN(d, static_cast<std::size_t>(columns.end - c));
        // Lanes past the window's end may have read what is beyond it, and are cleared.
        sums = hn::Add(sums, hn::IfThenElseZero(
                                 in_window, WindowVectors<D>::template sum_of_rows<Any>(windows, window, c)));
      }
      const Scalar sum = hn::GetLane(hn::SumOfLanes(d, sums));
      target.first[k] = (target.start != nullptr ? target.start[k] : target.bias) + target.scale * sum;
    }
  }

  /// The target row of windows that lie wholly in the padding: their sums are empty, and the start alone is left.
  static void put_nothing(const PlaneWindows& windows, const TargetRow<Scalar>& target) {
    if (target.start == target.first) return;
    if (target.start != nullptr)
      std::copy_n(target.start, windows.target_extent[2], target.first);
    else
      std::fill_n(target.first, windows.target_extent[2], target.bias);
    if (target.ntk != 0) std::fill_n(target.first + target.ntk, windows.target_extent[2], target.bias);
  }

  /// Sums neighbouring windows. All parameters are small: a row at an edge is as short as its call.
  using SumRows = void (*)(const Work&, const Scalar*, WindowSize, TargetSpan);

  /// Those of rows whose windows have all rows, and those of rows at the edges.
  struct Sums {
    SumRows complete;
    SumRows edge;
  };

  /// Any number of rows and taps.
  template <Index stride, bool inside, Start start>
  static constexpr Sums any_sums{sum_rows<KnownWindow<stride, inside, start>>,
                                 sum_rows<KnownWindow<stride, inside, start>>};

  /// Windows over single slabs, inside the source along the last axis. At the edges they have fewer rows.
  template <Index stride, Start start, Index rows, Index taps>
  static constexpr Sums known_sums{sum_rows<KnownWindow<stride, true, start, rows, taps>>,
                                   sum_rows<KnownWindow<stride, true, start, 0, taps>>};

  /// Windows of stride 2: [rows - 1][taps - 1].
  template <Start start>
  static constexpr std::array<std::array<Sums, 3>, 3> strided_sums{
      {{known_sums<2, start, 1, 1>, known_sums<2, start, 1, 2>, known_sums<2, start, 1, 3>},
       {known_sums<2, start, 2, 1>, known_sums<2, start, 2, 2>, known_sums<2, start, 2, 3>},
       {known_sums<2, start, 3, 1>, known_sums<2, start, 3, 2>, known_sums<2, start, 3, 3>}}};

  /// Sums of rows only: [rows], 0 for any number of rows and slabs.
  template <Start start>
  static constexpr std::array<Sums, 4> rows_only{known_sums<1, start, 0, 1>, known_sums<1, start, 1, 1>,
                                                 known_sums<1, start, 2, 1>, known_sums<1, start, 3, 1>};

  static constexpr Sums sums_by_entries{sum_rows_by_entries, sum_rows_by_entries};

  /// Sums all windows: in every output slab the rows whose windows have all rows of its first slab at once,
  /// and the others, unless their windows are empty, one by one.
  static void sum_windows(const Work& work, const Sums& sums) {
    const PlaneWindows& windows = work.windows;
    const Index row_count = windows.target_extent[1], stride = windows.stride[1], taps = windows.taps[1];
    // Row j begins at first + stride j: it has all its rows from all_begin on (first + stride j >= 0) to all_end - 1
    // (its last row is within the source).
    const Index first = windows.first[1], room = windows.source_extent[1] - taps - first;
    const Index all_begin = std::min((std::max<Index>(-first, 0) + stride - 1) / stride, row_count);
    const Index all_end = room < 0 ? all_begin : std::clamp(room / stride + 1, all_begin, row_count);
    for (Index plane = 0; plane < work.steps.planes; ++plane)
      for (Index i = 0; i < windows.target_extent[0]; ++i) {
        const Clipped slabs(windows, 0, i);
        const Index slab_count = slabs.end - slabs.begin;
        const Scalar* slab =
            work.source + plane * work.steps.source_plane + slabs.begin * windows.source_step[0];
        const Index place = plane * work.steps.target_plane + i * windows.target_step[0];
        const auto at_edge = [&](Index j) HWY_ATTR {
          const Clipped clipped(windows, 1, j);
          const TargetSpan span{place + j * windows.target_step[1], 1};
          if (slab_count > 0 && !clipped.empty())
            sums.edge(work, slab + clipped.begin * windows.source_step[1],
                      {slab_count, clipped.end - clipped.begin}, span);
          else
            put_nothing(windows, rows_of(work, nullptr, {0, 0}, span).target);
        };
        // A slab whose windows are empty has edge rows only.
        const Index begin = slab_count > 0 ? all_begin : row_count,
                    end = slab_count > 0 ? all_end : row_count;
        for (Index j = 0; j < begin; ++j) at_edge(j);
        if (begin < end)
          sums.complete(work, slab + (first + stride * begin) * windows.source_step[1], {slab_count, taps},
                        {place + begin * windows.target_step[1], end - begin});
        for (Index j = end; j < row_count; ++j) at_edge(j);
      }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#endif  // per target
