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

/// A target row, and what its sums are added to.
template <typename Scalar>
struct TargetRow {
  Scalar* first;
  const Scalar* start;  ///< Null: the bias.
  Scalar scale;
  Scalar bias;
};

// Of two neighbouring vectors, every second entry.
#if HWY_TARGET == HWY_SCALAR
template <class D, class V>
V even_entries(D /*d*/, V low, V /*high*/) {
  return low;
}
template <class D, class V>
V odd_entries(D /*d*/, V /*low*/, V high) {
  return high;
}
#else
template <class D, class V>
HWY_INLINE V even_entries(D d, V low, V high) {
  return hn::ConcatEven(d, high, low);
}
template <class D, class V>
HWY_INLINE V odd_entries(D d, V low, V high) {
  return hn::ConcatOdd(d, high, low);
}
#endif

template <typename Scalar>
struct WindowLoops {
  using D = hn::ScalableTag<Scalar>;
  using V = hn::Vec<D>;
  using Index = std::ptrdiff_t;

  /// What is known of a window when compiling; 0: not known. Small loops of known length save some per cent
  /// of a pooling.
  template <Index stride_, bool inside_, bool starts_, Index rows_ = 0, Index taps_ = 0>
  struct Known {
    static constexpr Index stride = stride_;
    static constexpr bool inside =
        inside_;  ///< Windows stay in the source and its guards along the last axis.
    static constexpr bool starts = starts_;  ///< Sums are added to numbers.
    static constexpr Index rows = rows_;     ///< Of a single slab.
    static constexpr Index taps = taps_;     ///< Along the last axis.
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

  /// Writes a vector of a target row.
  template <class Known>
  static HWY_INLINE void put(const TargetRow<Scalar>& target, Index k, V sum) {
    const D d;
    const V start = Known::starts ? hn::LoadU(d, target.start + k) : hn::Set(d, target.bias);
    hn::StoreU(hn::MulAdd(hn::Set(d, target.scale), sum, start), d, target.first + k);
  }

  /// Neighbouring rows of windows and of the target.
  struct Rows {
    WindowOfRows<Scalar> window;
    TargetRow<Scalar> target;
    Index window_step;
    Index target_step;
    Index count;
  };

  /// Calls body(window, target) for each.
  template <class Body>
  static HWY_INLINE void for_each(Rows rows, const Body& body) {
    for (Index j = 0; j < rows.count; ++j) {
      body(rows.window, rows.target);
      rows.window.first += rows.window_step;
      rows.target.first += rows.target_step;
      if (rows.target.start != nullptr) rows.target.start += rows.target_step;
    }
  }

  /// One vector of every row, then the next: from the last one to the first, whose whole vectors then
  /// overwrite what others have left behind the row in front.
  template <class Known>
  static HWY_INLINE void sum_rows(const PlaneWindows& windows, const Rows& rows) {
    const D d;
    const auto lanes = static_cast<Index>(hn::Lanes(d));
    for (Index k = (windows.target_extent[2] - 1) / lanes * lanes; k >= 0; k -= lanes) {
      const Index place = windows.first[2] + Known::stride * k;
#if WIDELIMIT_MOVES_LANES
      if constexpr (Known::stride == 2 && Known::taps == 3 && Known::rows > 0) {
        sum_vectors_of_three<Known>(windows, rows, k, place);
        continue;
      }
#endif
      if constexpr (Known::stride == 1 && Known::taps == 1) {
        sum_vectors_of_one<Known>(windows, rows, k);
        continue;
      }
      for_each(rows, [&](const WindowOfRows<Scalar>& window, const TargetRow<Scalar>& target)
                         HWY_ATTR { put<Known>(target, k, window_sum<Known>(windows, window, place)); });
    }
  }

  /// One tap of stride 1: sums of rows, without the gap.
  template <class Known>
  static HWY_INLINE void sum_vectors_of_one(const PlaneWindows& windows, const Rows& rows, Index k) {
    const D d;
    const auto lanes = static_cast<Index>(hn::Lanes(d));
    const Index in_front = windows.gap_size > 0 ? windows.gap_at - k : lanes;
    const Index place = windows.first[2] + k + (in_front > 0 ? 0 : windows.gap_size);
    if (in_front <= 0 || in_front >= lanes)
      return for_each(rows,
                      [&](const WindowOfRows<Scalar>& window, const TargetRow<Scalar>& target)
                          HWY_ATTR { put<Known>(target, k, sum_of_rows<Known>(windows, window, place)); });
    const auto is_in_front = hn::FirstN(d, static_cast<std::size_t>(in_front));
    for_each(rows, [&](const WindowOfRows<Scalar>& window, const TargetRow<Scalar>& target) HWY_ATTR {
      const V front = sum_of_rows<Known>(windows, window, place),
              behind = sum_of_rows<Known>(windows, window, place + windows.gap_size);
      put<Known>(target, k, hn::IfThenElse(is_in_front, front, behind));
    });
  }

#if WIDELIMIT_MOVES_LANES
  /// Three taps of stride 2: the third ones are the first ones of the next entries, so that every source row
  /// is read once. `vectors` of the three that this takes are not wholly behind the source.
  template <class Known, int vectors>
  static HWY_INLINE void sum_vectors_of_three(const PlaneWindows& windows, const Rows& rows, Index k,
                                              Index place) {
    const D d;
    const auto lanes = static_cast<Index>(hn::Lanes(d));
    for_each(rows, [&](const WindowOfRows<Scalar>& window, const TargetRow<Scalar>& target) HWY_ATTR {
      const V zero = hn::Zero(d);
      const V low = vectors > 0 ? sum_of_rows<Known>(windows, window, place) : zero;
      const V high = vectors > 1 ? sum_of_rows<Known>(windows, window, place + lanes) : zero;
      const V next = vectors > 2 ? sum_of_rows<Known>(windows, window, place + 2 * lanes) : zero;
      const V even = even_entries(d, low, high), odd = odd_entries(d, low, high);
      const V next_even = vectors > 2 ? even_entries(d, next, zero) : zero;
      put<Known>(target, k, hn::Add(hn::Add(even, odd), entries_from<1>(d, even, next_even)));
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

  /// Strides beyond 2, one entry after the other.
  static HWY_INLINE void sum_row_by_entries(const PlaneWindows& windows, const WindowOfRows<Scalar>& window,
                                            const TargetRow<Scalar>& target) {
    using Any = Known<0, false, false>;
    const D d;
    for (Index k = 0; k < windows.target_extent[2]; ++k) {
      const Clipped columns(windows, 2, k);
      V sums = hn::Zero(d);
      for (Index c = columns.begin; c < columns.end; c += static_cast<Index>(hn::Lanes(d))) {
        const auto in_window = hn::FirstN(d, static_cast<std::size_t>(columns.end - c));
        sums = hn::Add(sums, hn::IfThenElseZero(in_window, sum_of_rows<Any>(windows, window, c)));
      }
      const Scalar sum = hn::GetLane(hn::SumOfLanes(d, sums));
      target.first[k] = (target.start != nullptr ? target.start[k] : target.bias) + target.scale * sum;
    }
  }

  /// A row whose windows are empty.
  static void put_nothing(const PlaneWindows& windows, const TargetRow<Scalar>& target) {
    if (target.start == target.first) return;
    if (target.start != nullptr)
      std::copy_n(target.start, windows.target_extent[2], target.first);
    else
      std::fill_n(target.first, windows.target_extent[2], target.bias);
  }

  /// What the sums of all windows are made of.
  struct Work {
    const PlaneWindows& windows;
    const PlaneSteps& steps;
    const Scalar* source;
    const Scalar* start;
    Scalar* target;
  };

  /// Calls complete(rows) for the output rows of a slab whose windows have all rows of its first slab, and
  /// edge(window, target row) for the others, unless their windows are empty.
  template <class Complete, class Edge>
  static HWY_INLINE void for_each_row(const Work& work, const Complete& complete, const Edge& edge) {
    const PlaneWindows& windows = work.windows;
    const Index row_count = windows.target_extent[1], stride = windows.stride[1], taps = windows.taps[1];
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
        const auto target = [&](Index j) {
          const Index begin = place + j * windows.target_step[1];
          return TargetRow<Scalar>{work.target + begin, work.start != nullptr ? work.start + begin : nullptr,
                                   static_cast<Scalar>(windows.scale), static_cast<Scalar>(windows.bias)};
        };
        const auto at_edge = [&](Index j) HWY_ATTR {
          const Clipped clipped(windows, 1, j);
          if (slab_count > 0 && !clipped.empty())
            edge(WindowOfRows<Scalar>{slab + clipped.begin * windows.source_step[1], slab_count,
                                      clipped.end - clipped.begin},
                 target(j));
          else
            put_nothing(windows, target(j));
        };
        const Index begin = slab_count > 0 ? all_begin : row_count,
                    end = slab_count > 0 ? all_end : row_count;
        for (Index j = 0; j < begin; ++j) at_edge(j);
        if (begin < end)
          complete(Rows{{slab + (first + stride * begin) * windows.source_step[1], slab_count, taps},
                        target(begin),
                        stride * windows.source_step[1],
                        windows.target_step[1],
                        end - begin});
        for (Index j = end; j < row_count; ++j) at_edge(j);
      }
  }

  using Sum = void (*)(const Work&);

  template <class All, class Edge>
  static HWY_INLINE void sum_windows(const Work& work) {
    for_each_row(
        work, [&](const Rows& rows) HWY_ATTR { sum_rows<All>(work.windows, rows); },
        [&](const WindowOfRows<Scalar>& window, const TargetRow<Scalar>& target) HWY_ATTR {
          sum_rows<Edge>(work.windows, {window, target, 0, 0, 1});
        });
  }

  template <Index stride, bool inside, bool starts>
  static void sum_any(const Work& work) {
    using Any = Known<stride, inside, starts>;
    sum_windows<Any, Any>(work);
  }

  /// Windows over single slabs, inside the source along the last axis. At the edges they have fewer rows.
  template <Index stride, bool starts, Index rows, Index taps>
  static void sum_known(const Work& work) {
    sum_windows<Known<stride, true, starts, rows, taps>, Known<stride, true, starts, 0, taps>>(work);
  }

  /// Windows of stride 2: [rows - 1][taps - 1].
  template <bool starts>
  static constexpr std::array<std::array<Sum, 3>, 3> strided_windows{
      {{sum_known<2, starts, 1, 1>, sum_known<2, starts, 1, 2>, sum_known<2, starts, 1, 3>},
       {sum_known<2, starts, 2, 1>, sum_known<2, starts, 2, 2>, sum_known<2, starts, 2, 3>},
       {sum_known<2, starts, 3, 1>, sum_known<2, starts, 3, 2>, sum_known<2, starts, 3, 3>}}};

  /// Sums of rows only: [rows], 0 for any number of rows and slabs.
  template <bool starts>
  static constexpr std::array<Sum, 4> rows_only{sum_known<1, starts, 0, 1>, sum_known<1, starts, 1, 1>,
                                                sum_known<1, starts, 2, 1>, sum_known<1, starts, 3, 1>};

  template <bool starts>
  static Sum choose(const PlaneWindows& windows) {
    const auto row = static_cast<std::size_t>(windows.taps[1] - 1);
    const auto tap = static_cast<std::size_t>(windows.taps[2] - 1);
    const Index last = windows.first[2] + windows.stride[2] * (windows.target_extent[2] - 1);
    const bool inside = windows.first[2] >= -windows.source_guard &&
                        last + windows.taps[2] <= windows.source_extent[2] + windows.source_guard;
    const bool known = inside && windows.taps[0] == 1 && row < 3 && tap < 3;
    if (windows.stride[2] == 1) {
      if (inside && tap == 0) return rows_only<starts>[known ? row + 1 : 0];
      return inside ? sum_any<1, true, starts> : sum_any<1, false, starts>;
    }
    if (known) return strided_windows<starts>[row][tap];
    return inside ? sum_any<2, true, starts> : sum_any<2, false, starts>;
  }

  static void sums(const Work& work) {
    if (work.windows.stride[2] > 2) {
      const auto sum = [&](const WindowOfRows<Scalar>& window, const TargetRow<Scalar>& target)
                           HWY_ATTR { sum_row_by_entries(work.windows, window, target); };
      return for_each_row(
          work, [&](const Rows& rows) HWY_ATTR { for_each(rows, sum); }, sum);
    }
    (work.start != nullptr ? choose<true>(work.windows) : choose<false>(work.windows))(work);
  }
};

void float_sums(const PlaneWindows& windows, const PlaneSteps& steps, const float* source, const float* start,
                float* target) {
  WindowLoops<float>::sums({windows, steps, source, start, target});
}
void double_sums(const PlaneWindows& windows, const PlaneSteps& steps, const double* source,
                 const double* start, double* target) {
  WindowLoops<double>::sums({windows, steps, source, start, target});
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
