#pragma once

#include <array>

#include "kernel/planes/plane.hpp"
#include "kernel/planes/plane_layout.hpp"
#include "numerics/rows/window_rows.hpp"

/// Window sums on planes.
namespace widelimit {

/// Sets guard entries, rows and slabs of `count` planes, one after the other, to zero. The margin in front
/// of the first is zero always.
template <typename Scalar>
void clear_guards(const PlaneLayout& layout, Index count, const Plane<Scalar>& planes);

/// Lays a box of an array of positions out as a plane with zero guards. `source` is the box's first entry,
/// `step` the distance of slabs and rows in the array. Reads and writes less than row_padding numbers more.
template <typename Scalar>
void pack_plane(const Scalar* source, const std::array<Index, 2>& step, const PlaneLayout& layout,
                Scalar* plane);

/// The same from a strip, whose rows have the plane's stride already. `slab_rows`: rows of a slab of the
/// strip.
template <typename Scalar>
void pack_strip(const Scalar* source, Index slab_rows, const PlaneLayout& layout, Scalar* plane);

/// K' = scale sum over the window + bias, T' = K' + scale sum (0 if the source has no ntk), for a same-padded
/// stride-1 window: shifted sums along one axis after the other, of `count` planes one after the other,
/// whose guards are zero. The scratch rows have a zero margin in front.
template <typename Scalar>
void convolve_shifted(const Window3& window, const Index3& front, const PlaneLayout& layout, Index count,
                      double scale, double bias, const Plane<Scalar>& source, const Plane<Scalar>& target,
                      const std::array<Scalar*, 2>& scratch);

/// The same by window sums, for any stride and padding but circular; scale and bias are the windows'. Reads
/// less than row_padding numbers before a source row, and overwrites as many after the last plane of
/// the source, and less than that after a target row.
/// The same without weights: each kernel by itself.
template <typename Scalar>
void select_strided(const numerics::PlaneWindows& windows, const numerics::PlaneSteps& steps,
                    const Plane<Scalar>& source, const Plane<Scalar>& target);

template <typename Scalar>
void convolve_strided(const numerics::PlaneWindows& windows, const numerics::PlaneSteps& steps,
                      const Plane<Scalar>& source, const Plane<Scalar>& target);

}  // namespace widelimit
