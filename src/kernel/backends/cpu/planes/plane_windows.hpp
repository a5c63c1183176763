#pragma once

#include <array>

#include "kernel/backends/cpu/planes/plane.hpp"
#include "kernel/backends/cpu/planes/plane_layout.hpp"
#include "numerics/rows/window_rows.hpp"

/// Window sums on planes.
namespace widelimit {

/// Sets the guard entries, rows and slabs of `count` planes, one after the other, to zero. The margin before the
/// first plane is always zero.
template <typename Scalar>
void clear_guards(const PlaneLayout& layout, Index count, const Plane<Scalar>& planes);

/// Lays out a box of an array of positions as a plane with zero guards. `source` is the box's first entry, `step` the
/// distance of slabs and of rows in the array. Less than row_padding numbers more are read and written.
template <typename Scalar>
void pack_plane(const Scalar* source, const std::array<Index, 2>& step, const PlaneLayout& layout,
                Scalar* plane);

/// Lays out a part of a strip as a plane. The rows of the strip already have the plane's stride; `slab_rows` are the
/// rows of a slab of the strip.
template <typename Scalar>
void pack_strip(const Scalar* source, Index slab_rows, const PlaneLayout& layout, Scalar* plane);

/// K' = scale * (sum over the window) + bias, T' = K' + scale * (sum over the window of T, 0 if the source has no
/// ntk), for a same-padded stride-1 window: sums of shifted copies along one axis after the other, for `count` planes
/// one after the other, whose guards are zero. The scratch rows have a zero margin before them.
template <typename Scalar>
void convolve_shifted(const Window3& window, const Index3& front, const PlaneLayout& layout, Index count,
                      double scale, double bias, const Plane<Scalar>& source, const Plane<Scalar>& target,
                      const std::array<Scalar*, 2>& scratch);

/// Sums over windows without weights, for each kernel by itself: T' does not contain K'. Reads and writes beyond the
/// planes as convolve_strided() does.
template <typename Scalar>
void select_strided(const numerics::PlaneWindows& windows, const numerics::PlaneSteps& steps,
                    const Plane<Scalar>& source, const Plane<Scalar>& target);

/// K' = scale * (sum over the window) + bias, T' = K' + scale * (sum of T), by sums over windows of any stride and
/// any padding except circular; scale and bias are those of `windows`. Less than row_padding numbers are read before
/// a source row, as many are overwritten after the last plane of the source, and fewer after a target row.
template <typename Scalar>
void convolve_strided(const numerics::PlaneWindows& windows, const numerics::PlaneSteps& steps,
                      const Plane<Scalar>& source, const Plane<Scalar>& target);

}  // namespace widelimit
