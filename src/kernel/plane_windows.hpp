#pragma once

#include <array>

#include "kernel/geometry.hpp"
#include "kernel/plane.hpp"

/// Window sums on planes.
namespace widelimit {

/// Sets guard entries, rows and slabs of `count` planes, one behind the other, to zero. The margin in front
/// of the first is zero always.
template <typename Scalar>
void clear_guards(const PlaneLayout& layout, Index count, Scalar* planes);

/// K' = scale sum over the window + bias, T' = K' + scale sum, for a same-padded stride-1 window: shifted
/// sums along one axis after the other, of `count` planes one behind the other. Clears the source's guards.
/// The scratch planes have a zero margin in front.
template <typename Scalar>
void convolve_shifted(const Window3& window, const Index3& front, const PlaneLayout& layout, Index count,
                      Scalar scale, Scalar bias, const Plane<Scalar>& source, const Plane<Scalar>& target,
                      const std::array<Plane<Scalar>, 2>& scratch);

/// Where a general window lies: output entry i of an axis sums entries first + stride i + t, 0 <= t < taps,
/// of the source, those outside of it being absent.
struct WindowPlacement {
  Index3 first;
  Index3 stride;
  Index3 taps;
};

/// target[i] += sum over the window. `row` is scratch for one source row.
template <typename Scalar>
void add_window_sums(const WindowPlacement& placement, const PlaneLayout& source_layout, const Scalar* source,
                     const PlaneLayout& target_layout, Scalar* target, Scalar* row);

}  // namespace widelimit
