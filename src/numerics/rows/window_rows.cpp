#include "numerics/rows/window_rows.hpp"

#include <algorithm>
#include <array>

// Highway 1.0.3 forgets this target where the compiler's flags make it the baseline (-march=native).
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS HWY_AVX3_DL
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numerics/rows/window_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "numerics/rows/window_vectors-inl.hpp"

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

template <typename Scalar>
struct WindowLoops {
  using D = hn::ScalableTag<Scalar>;
  using V = hn::Vec<D>;
  using Index = std::ptrdiff_t;
  using Rows = WindowRows<Scalar>;

  /// One vector of every row, then the next: from the last one to the first, whose whole vectors then
  /// overwrite what others have left behind the row in front. A few entries at the end are a short vector,
  /// which costs less where it crosses cache lines.
  template <class Known>
  static HWY_INLINE void sum_rows(const PlaneWindows& windows, const Rows& rows) {
    using Short = hn::CappedTag<Scalar, 4>;
    const auto lanes = static_cast<Index>(hn::Lanes(D())), few = static_cast<Index>(hn::Lanes(Short()));
    Index k = (windows.target_extent[2] - 1) / lanes * lanes;
    if (few < lanes && windows.target_extent[2] - k <= few) {
      WindowVectors<Short>::template sum_rows<Known>(windows, rows, k);
      k -= lanes;
    }
    for (; k >= 0; k -= lanes) WindowVectors<D>::template sum_rows<Known>(windows, rows, k);
  }

  /// Strides beyond 2, one entry after the other.
  static HWY_INLINE void sum_row_by_entries(const PlaneWindows& windows, WindowOfRows<Scalar> window,
                                            TargetRow<Scalar> target) {
    sum_entries(windows, window, target);
    if (target.ntk == 0) return;
    window.first += window.ntk;
    target.start = target.first;
    target.first += target.ntk;
    sum_entries(windows, window, target);
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
        sums = hn::Add(sums, hn::IfThenElseZero(
                                 in_window, WindowVectors<D>::template sum_of_rows<Any>(windows, window, c)));
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
    if (target.ntk != 0) std::fill_n(target.first + target.ntk, windows.target_extent[2], target.bias);
  }

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
                                   static_cast<Scalar>(windows.scale), static_cast<Scalar>(windows.bias),
                                   work.target_ntk};
        };
        const auto at_edge = [&](Index j) HWY_ATTR {
          const Clipped clipped(windows, 1, j);
          if (slab_count > 0 && !clipped.empty())
            edge(WindowOfRows<Scalar>{slab + clipped.begin * windows.source_step[1], slab_count,
                                      clipped.end - clipped.begin, work.source_ntk},
                 target(j));
          else
            put_nothing(windows, target(j));
        };
        const Index begin = slab_count > 0 ? all_begin : row_count,
                    end = slab_count > 0 ? all_end : row_count;
        for (Index j = 0; j < begin; ++j) at_edge(j);
        if (begin < end)
          complete(Rows{
              {slab + (first + stride * begin) * windows.source_step[1], slab_count, taps, work.source_ntk},
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

  template <Index stride, bool inside, Start start>
  static void sum_any(const Work& work) {
    using Any = KnownWindow<stride, inside, start>;
    sum_windows<Any, Any>(work);
  }

  /// Windows over single slabs, inside the source along the last axis. At the edges they have fewer rows.
  template <Index stride, Start start, Index rows, Index taps>
  static void sum_known(const Work& work) {
    sum_windows<KnownWindow<stride, true, start, rows, taps>, KnownWindow<stride, true, start, 0, taps>>(
        work);
  }

  /// Windows of stride 2: [rows - 1][taps - 1].
  template <Start start>
  static constexpr std::array<std::array<Sum, 3>, 3> strided_windows{
      {{sum_known<2, start, 1, 1>, sum_known<2, start, 1, 2>, sum_known<2, start, 1, 3>},
       {sum_known<2, start, 2, 1>, sum_known<2, start, 2, 2>, sum_known<2, start, 2, 3>},
       {sum_known<2, start, 3, 1>, sum_known<2, start, 3, 2>, sum_known<2, start, 3, 3>}}};

  /// Sums of rows only: [rows], 0 for any number of rows and slabs.
  template <Start start>
  static constexpr std::array<Sum, 4> rows_only{sum_known<1, start, 0, 1>, sum_known<1, start, 1, 1>,
                                                sum_known<1, start, 2, 1>, sum_known<1, start, 3, 1>};

  template <Start start>
  static Sum choose(const PlaneWindows& windows) {
    const auto row = static_cast<std::size_t>(windows.taps[1] - 1);
    const auto tap = static_cast<std::size_t>(windows.taps[2] - 1);
    const Index last = windows.first[2] + windows.stride[2] * (windows.target_extent[2] - 1);
    const bool inside = windows.first[2] >= -windows.source_guard &&
                        last + windows.taps[2] <= windows.source_extent[2] + windows.source_guard;
    const bool known = inside && windows.taps[0] == 1 && row < 3 && tap < 3;
    if (windows.stride[2] == 1) {
      if (inside && tap == 0) return rows_only<start>[known ? row + 1 : 0];
      return inside ? sum_any<1, true, start> : sum_any<1, false, start>;
    }
    if (known) return strided_windows<start>[row][tap];
    return inside ? sum_any<2, true, start> : sum_any<2, false, start>;
  }

  static void sums(const Work& work) {
    if (work.windows.stride[2] > 2) {
      const auto sum = [&](const WindowOfRows<Scalar>& window, const TargetRow<Scalar>& target)
                           HWY_ATTR { sum_row_by_entries(work.windows, window, target); };
      return for_each_row(
          work, [&](const Rows& rows) HWY_ATTR { for_each(rows, sum); }, sum);
    }
    const Sum sum = work.target_ntk != 0    ? choose<Start::bias_and_nngp>(work.windows)
                    : work.start != nullptr ? choose<Start::numbers>(work.windows)
                                            : choose<Start::bias>(work.windows);
    sum(work);
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

template <typename Scalar>
void convolve(const PlaneWindows& windows, const PlaneSteps& steps, const KernelPair<const Scalar>& source,
              const KernelPair<Scalar>& target) {
  WindowLoops<Scalar>::sums({windows, steps, source.nngp, nullptr, target.nngp, source.ntk - source.nngp,
                             target.ntk - target.nngp});
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

HWY_EXPORT(float_sums);
HWY_EXPORT(double_sums);
HWY_EXPORT(float_convolution);
HWY_EXPORT(double_convolution);

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
