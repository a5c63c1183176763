#include "kernel/backends/cpu/planes/plane_windows.hpp"

#include <algorithm>
#include <vector>

#include "kernel/vector_padding.hpp"
#include "numerics/rows/linear_rows.hpp"

namespace widelimit {
namespace {

using numerics::linear_rows;

/// Clears the guards of one kernel of one plane.
template <typename Scalar>
void clear_guards_of(const PlaneLayout& layout, Scalar* plane) {
  const auto clear = [](Scalar* begin, Index size) {
    // Mostly there is one number, for which a call of memset would take long.
    if (size == 1)
      *begin = 0;
    else
      std::fill_n(begin, size, Scalar{0});
  };
  // Guards are those of rows, then gaps between pieces of a row, then whole rows between and behind pieces of a slab,
  // then slabs behind the plane.
  for (Index i = 0; i < layout.extent[0]; ++i) {
    for (Index j = 0; j < layout.extent[1]; ++j)
      clear(plane + layout.at(i, j) + layout.extent[2], layout.guard[2]);
    for (Index j = 0; layout.gap_size[2] > 0 && j < layout.extent[1]; ++j)
      clear(plane + layout.at(i, j) + layout.gap[2], layout.gap_size[2]);
    clear(plane + layout.at(i, layout.gap[1]), layout.gap_size[1] * layout.stride[1]);
    clear(plane + layout.at(i, layout.extent[1]), layout.guard[1] * layout.stride[1]);
  }
  clear(plane + layout.at(layout.extent[0], 0), layout.guard[0] * layout.stride[0]);
}

/// Clears the guards along the first axis, which lie behind all slabs.
template <typename Scalar>
void clear_last_slabs(const PlaneLayout& layout, Scalar* plane) {
  const Index end = layout.extent[0] * layout.stride[0];
  std::fill_n(plane + end, layout.length - end, Scalar{0});
}

}  // namespace

template <typename Scalar>
void clear_guards(const PlaneLayout& layout, Index count, const Plane<Scalar>& planes) {
  for (Index n = 0; n < count; ++n) {
    clear_guards_of(layout, planes.nngp + n * layout.length);
    if (planes.ntk != nullptr) clear_guards_of(layout, planes.ntk + n * layout.length);
  }
}

template <typename Scalar>
void pack_plane(const Scalar* source, const std::array<Index, 2>& step, const PlaneLayout& layout,
                Scalar* plane) {
  const auto& rows = linear_rows<Scalar>();
  // Rows are packed with their guards; what is left of a slab are guard rows.
  const Index slab = layout.extent[1] * layout.stride[1];
  for (Index i = 0; i < layout.extent[0]; ++i) {
    Scalar* target = plane + layout.at(i, 0);
    rows.pack(source + i * step[0], step[1], static_cast<std::size_t>(layout.extent[1]),
              static_cast<std::size_t>(layout.extent[2]), target, static_cast<std::size_t>(layout.stride[1]));
    std::fill_n(target + slab, layout.stride[0] - slab, Scalar{0});
  }
  clear_last_slabs(layout, plane);
}

template <typename Scalar>
void pack_strip(const Scalar* source, Index slab_rows, const PlaneLayout& layout, Scalar* plane) {
  linear_rows<Scalar>().pack(source, slab_rows * layout.stride[1], static_cast<std::size_t>(layout.extent[0]),
                             static_cast<std::size_t>(layout.extent[1] * layout.stride[1]), plane,
                             static_cast<std::size_t>(layout.stride[0]));
  clear_last_slabs(layout, plane);
}

template <typename Scalar>
void convolve_shifted(const Window3& window, const Index3& front, const PlaneLayout& layout, Index count,
                      double scale, double bias, const Plane<Scalar>& source, const Plane<Scalar>& target,
                      const std::array<Scalar*, 2>& scratch) {
  const auto& rows = linear_rows<Scalar>();
  const auto size = static_cast<std::size_t>(padded(count * layout.length));
  // What follows the last plane is read as its guards, and may contain the rest of a longer plane.
  fill_plane(source + count * layout.length, static_cast<std::size_t>(padded(layout.margin()) + row_padding),
             Scalar{0}, Scalar{0});
  numerics::Convolution convolution{.axes = {}, .axis_count = 0, .scale = scale, .bias = bias};
  for (std::size_t k = 3; k-- > 0;)
    if (window.size[k] > 1)
      // A step along axis k is a shift by its stride, since guards keep neighbouring rows apart.
      convolution.axes[convolution.axis_count++] = {-front[k] * layout.stride[k], layout.stride[k],
                                                    static_cast<std::size_t>(window.size[k])};
  rows.convolve(convolution, source.nngp, source.ntk, scratch.data(), target.nngp, target.ntk, size);
}

template <typename Scalar>
void convolve_strided(const numerics::PlaneWindows& windows, const numerics::PlaneSteps& steps,
                      const Plane<Scalar>& source, const Plane<Scalar>& target) {
  // What the windows of gaps after the last row read must be numbers.
  fill_plane(source + steps.planes * steps.source_plane, static_cast<std::size_t>(row_padding), Scalar{0},
             Scalar{0});
  if (source.ntk != nullptr)
    return numerics::convolve_windows<Scalar>(windows, steps, {source.nngp, source.ntk},
                                              {target.nngp, target.ntk});
  numerics::window_sums<Scalar>(windows, steps, source.nngp, nullptr, target.nngp);
  // Without T before the convolution T' = K'.
  if (target.ntk != nullptr) std::copy_n(target.nngp, steps.planes * steps.target_plane, target.ntk);
}

template <typename Scalar>
void select_strided(const numerics::PlaneWindows& windows, const numerics::PlaneSteps& steps,
                    const Plane<Scalar>& source, const Plane<Scalar>& target) {
  fill_plane(source + steps.planes * steps.source_plane, static_cast<std::size_t>(row_padding), Scalar{0},
             Scalar{0});
  numerics::window_sums<Scalar>(windows, steps, source.nngp, nullptr, target.nngp);
  if (target.ntk == nullptr) return;
  if (source.ntk != nullptr)
    numerics::window_sums<Scalar>(windows, steps, source.ntk, nullptr, target.ntk);
  else
    // A selection has no weights and adds nothing to T = 0.
    std::fill_n(target.ntk, steps.planes * steps.target_plane, Scalar{0});
}

template void select_strided(const numerics::PlaneWindows&, const numerics::PlaneSteps&, const Plane<float>&,
                             const Plane<float>&);
template void select_strided(const numerics::PlaneWindows&, const numerics::PlaneSteps&, const Plane<double>&,
                             const Plane<double>&);
template void clear_guards(const PlaneLayout&, Index, const Plane<float>&);
template void clear_guards(const PlaneLayout&, Index, const Plane<double>&);
template void pack_plane(const float*, const std::array<Index, 2>&, const PlaneLayout&, float*);
template void pack_strip(const float*, Index, const PlaneLayout&, float*);
template void pack_strip(const double*, Index, const PlaneLayout&, double*);
template void pack_plane(const double*, const std::array<Index, 2>&, const PlaneLayout&, double*);
template void convolve_shifted(const Window3&, const Index3&, const PlaneLayout&, Index, double, double,
                               const Plane<float>&, const Plane<float>&, const std::array<float*, 2>&);
template void convolve_shifted(const Window3&, const Index3&, const PlaneLayout&, Index, double, double,
                               const Plane<double>&, const Plane<double>&, const std::array<double*, 2>&);
template void convolve_strided(const numerics::PlaneWindows&, const numerics::PlaneSteps&,
                               const Plane<float>&, const Plane<float>&);
template void convolve_strided(const numerics::PlaneWindows&, const numerics::PlaneSteps&,
                               const Plane<double>&, const Plane<double>&);

}  // namespace widelimit
