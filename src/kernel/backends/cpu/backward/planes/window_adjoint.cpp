#include "kernel/backends/cpu/backward/planes/window_adjoint.hpp"

#include <algorithm>

namespace widelimit {
namespace {

/// The entries after the convolution, [begin, end), of which one tap of the window falls on an entry before it rather
/// than into the padding.
struct TapRange {
  Index begin;
  Index end;
};

TapRange range_of(const AxisWindows& axis, Index tap) {
  const Index first = axis.first_of_all + tap;
  const Index begin = first >= 0 ? 0 : (-first + axis.stride - 1) / axis.stride;
  const Index end = first >= axis.source ? 0 : (axis.source - first + axis.stride - 1) / axis.stride;
  return {begin, std::min(end, axis.target)};
}

/// Calls body(source entry, target entry) for the first of `inner` neighbours that a tap adds up along an axis.
/// `outer` is the product of the sizes before the axis, `inner` that of the sizes after it.
template <typename Body>
void for_each_run(const AxisWindows& axis, Index outer, Index inner, const Body& body) {
  for (Index o = 0; o < outer; ++o)
    for (Index tap = 0; tap < axis.taps; ++tap) {
      const TapRange range = range_of(axis, tap);
      const Index first = axis.first_of_all + tap;
      for (Index a = range.begin; a < range.end; ++a)
        body((o * axis.source + first + axis.stride * a) * inner, (o * axis.target + a) * inner);
    }
}

/// For the last axis, where neighbours along it are next to each other in memory: calls body(first source entry,
/// first target entry, count) for whole rows. Source entries are the stride apart.
template <typename Body>
void for_each_row_of_taps(const AxisWindows& axis, Index outer, const Body& body) {
  for (Index o = 0; o < outer; ++o)
    for (Index tap = 0; tap < axis.taps; ++tap) {
      const TapRange range = range_of(axis, tap);
      if (range.begin >= range.end) continue;
      const Index first = axis.first_of_all + tap + axis.stride * range.begin;
      body(o * axis.source + first, o * axis.target + range.begin, range.end - range.begin);
    }
}

template <typename Scalar>
void spread_along(const AxisWindows& axis, Index outer, Index inner, const Scalar* target, Scalar* source) {
  if (inner == 1)
    return for_each_row_of_taps(axis, outer, [&](Index from, Index to, Index count) {
      if (axis.stride == 1)
        for (Index i = 0; i < count; ++i) source[from + i] += target[to + i];
      else
        for (Index i = 0; i < count; ++i) source[from + axis.stride * i] += target[to + i];
    });
  for_each_run(axis, outer, inner, [&](Index from, Index to) {
    for (Index i = 0; i < inner; ++i) source[from + i] += target[to + i];
  });
}

/// One of the sums along an axis that make up the windows.
struct Pass {
  std::size_t axis;
  Index outer;
  Index inner;
};

/// The sums in the order of the forward pass. The last axis comes first, while rows are longest. Axes along which
/// nothing happens are left out.
std::vector<Pass> passes_of(const std::array<AxisWindows, 3>& windows) {
  std::vector<Pass> passes;
  Index3 sizes{windows[0].source, windows[1].source, windows[2].source};
  for (std::size_t axis = 3; axis-- > 0;) {
    if (windows[axis].is_identity()) continue;
    Index outer = 1, inner = 1;
    for (std::size_t k = 0; k < axis; ++k) outer *= sizes[k];
    for (std::size_t k = axis + 1; k < 3; ++k) inner *= sizes[k];
    passes.push_back({axis, outer, inner});
    sizes[axis] = windows[axis].target;
  }
  return passes;
}

Index source_size(const std::array<AxisWindows, 3>& windows, const Pass& pass) {
  return pass.outer * windows[pass.axis].source * pass.inner;
}

}  // namespace

std::array<AxisWindows, 3> windows_between(const Window3& window, const Index3& left_front,
                                           const PlacedPlane& source, const PlacedPlane& target) {
  std::array<AxisWindows, 3> windows{};
  for (std::size_t k = 0; k < 3; ++k)
    // Entry 0 of a plane is the position origin[0] of the left input along the axis, and a window of position a
    // begins at stride * a - front.
    windows[k] = {window.size[k], window.stride[k],
                  window.stride[k] * target.axis[k].origin[0] - left_front[k] - source.axis[k].origin[0],
                  source.layout.extent[k], target.layout.extent[k]};
  return windows;
}

template <typename Scalar>
void WindowAdjoint<Scalar>::spread(const std::array<AxisWindows, 3>& windows, const Scalar* target,
                                   Scalar* source) {
  const std::vector<Pass> passes = passes_of(windows);
  if (passes.empty()) {
    const Index size = windows[0].source * windows[1].source * windows[2].source;
    for (Index i = 0; i < size; ++i) source[i] += target[i];
  }
  // What was summed last is spread first. Two buffers take turns; the first pass in forward order writes to the
  // source.
  for (std::size_t p = passes.size(); p-- > 0;) {
    std::vector<Scalar>& before = between_[p % 2];
    if (p > 0) before.assign(static_cast<std::size_t>(source_size(windows, passes[p])), Scalar{0});
    Scalar* to = p == 0 ? source : before.data();
    spread_along(windows[passes[p].axis], passes[p].outer, passes[p].inner, target, to);
    target = to;
  }
}

template class WindowAdjoint<float>;
template class WindowAdjoint<double>;

}  // namespace widelimit
