#include "kernel/plane_windows.hpp"

#include <algorithm>
#include <vector>

#include "kernel/vector_padding.hpp"
#include "numerics/rows/linear_rows.hpp"

namespace widelimit {
namespace {

using numerics::linear_rows;
using numerics::Taps;

}  // namespace

template <typename Scalar>
void clear_guards(const PlaneLayout& layout, Index count, Scalar* planes) {
  const auto clear = [](Scalar* begin, Index size) {
    // Mostly one number, for which a call of memset would be long.
    if (size == 1)
      *begin = 0;
    else
      std::fill_n(begin, size, Scalar{0});
  };
  for (Index n = 0; n < count; ++n) {
    Scalar* plane = planes + n * layout.length;
    for (Index i = 0; i < layout.extent[0]; ++i) {
      for (Index j = 0; j < layout.extent[1]; ++j)
        clear(plane + layout.at(i, j) + layout.extent[2], layout.guard[2]);
      clear(plane + layout.at(i, layout.extent[1]), layout.guard[1] * layout.stride[1]);
    }
    clear(plane + layout.at(layout.extent[0], 0), layout.guard[0] * layout.stride[0]);
  }
}

template <typename Scalar>
void convolve_shifted(const Window3& window, const Index3& front, const PlaneLayout& layout, Index count,
                      Scalar scale, Scalar bias, const Plane<Scalar>& source, const Plane<Scalar>& target,
                      const std::array<Plane<Scalar>, 2>& scratch) {
  const auto& rows = linear_rows<Scalar>();
  const auto size = static_cast<std::size_t>(padded(count * layout.length));
  clear_guards(layout, count, source.nngp);
  if (source.ntk != nullptr) clear_guards(layout, count, source.ntk);
  Plane<Scalar> current = source;
  std::size_t next = 0, axis = 3;
  const auto taps = [&](std::size_t k) {
    return Taps{-front[k] * layout.stride[k], layout.stride[k], static_cast<std::size_t>(window.size[k])};
  };
  while (--axis > 0) {
    const bool is_last = std::all_of(window.size.begin(), window.size.begin() + static_cast<Index>(axis),
                                     [](Index size_before) { return size_before == 1; });
    if (is_last) break;
    if (window.size[axis] == 1) continue;
    rows.window_sum(current.nngp, taps(axis), scratch[next].nngp, size);
    if (source.ntk != nullptr) rows.window_sum(current.ntk, taps(axis), scratch[next].ntk, size);
    current = scratch[next];
    next = 1 - next;
  }
  rows.window_affine(current.nngp, current.ntk, taps(axis), scale, bias, target.nngp, target.ntk, size);
}

template <typename Scalar>
void add_window_sums(const WindowPlacement& placement, const PlaneLayout& source_layout, const Scalar* source,
                     const PlaneLayout& target_layout, Scalar* target, Scalar* row) {
  const Index3& extent = source_layout.extent;
  for_each_row(target_layout.extent, [&](Index i, Index j) {
    const Index x = placement.first[0] + placement.stride[0] * i,
                y = placement.first[1] + placement.stride[1] * j;
    bool any = false;
    for (Index a = std::max<Index>(x, 0); a < std::min(x + placement.taps[0], extent[0]); ++a)
      for (Index b = std::max<Index>(y, 0); b < std::min(y + placement.taps[1], extent[1]); ++b) {
        const Scalar* from = source + source_layout.at(a, b);
        if (any)
          for (Index c = 0; c < extent[2]; ++c) row[c] += from[c];
        else
          std::copy_n(from, extent[2], row);
        any = true;
      }
    if (!any) return;
    Scalar* to = target + target_layout.at(i, j);
    for (Index k = 0; k < target_layout.extent[2]; ++k) {
      const Index z = placement.first[2] + placement.stride[2] * k;
      for (Index c = std::max<Index>(z, 0); c < std::min(z + placement.taps[2], extent[2]); ++c)
        to[k] += row[c];
    }
  });
}

template void clear_guards(const PlaneLayout&, Index, float*);
template void clear_guards(const PlaneLayout&, Index, double*);
template void convolve_shifted(const Window3&, const Index3&, const PlaneLayout&, Index, float, float,
                               const Plane<float>&, const Plane<float>&, const std::array<Plane<float>, 2>&);
template void convolve_shifted(const Window3&, const Index3&, const PlaneLayout&, Index, double, double,
                               const Plane<double>&, const Plane<double>&,
                               const std::array<Plane<double>, 2>&);
template void add_window_sums(const WindowPlacement&, const PlaneLayout&, const float*, const PlaneLayout&,
                              float*, float*);
template void add_window_sums(const WindowPlacement&, const PlaneLayout&, const double*, const PlaneLayout&,
                              double*, double*);

}  // namespace widelimit
