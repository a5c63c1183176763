#pragma once

#include "kernel/backends/cpu/backward/planes/kept_node.hpp"
#include "kernel/backends/cpu/planes/affine.hpp"
#include "kernel/backends/cpu/planes/circular_windows.hpp"

/// Entries of a kept node that windows see which are no plane of it.
namespace widelimit {

/// Calls body(entry of the plane, entry of the kept matrix) for all entries that a circular convolution sums. A
/// window that goes around an axis may do so for one input and not for the other, so it reads entries of other
/// offsets than its own. The plane has one piece. `left` and `right` are the sizes before the convolution.
template <typename Body>
void for_each_wrapped(const Affine& affine, const PlacedPlane& plane, const Index3& left, const Index3& right,
                      const Body& body) {
  const Box box = piece_box(plane.axis, {0, 0, 0});
  const auto read_windows = [&](const Index3& a, std::size_t entry) {
    const Index3 b{a[0] + box.offset[0], a[1] + box.offset[1], a[2] + box.offset[2]};
    for_each_tap(affine.window, [&](const Index3& tap) {
      const Index3 from_left = wrapped_position(affine.window, a, tap, affine.left_front, left),
                   from_right = wrapped_position(affine.window, b, tap, affine.right_front, right);
      body(entry, static_cast<std::size_t>(position_number(from_left, left) * product(right) +
                                           position_number(from_right, right)));
    });
  };
  for_each_row(box.extent, [&](Index x, Index y) {
    for (Index z = 0; z < box.extent[2]; ++z)
      read_windows({box.origin[0] + x, box.origin[1] + y, box.origin[2] + z},
                   static_cast<std::size_t>(plane.layout.at(x, y) + z));
  });
}

/// Calls body(entry of the plane, entry of the kept matrix) for all entries of a plane of the kept node.
template <typename Body>
void for_each_kept(const PlacedPlane& plane, const Index3& left, const Index3& right, const Body& body) {
  const Index columns = product(right);
  for_each_row_of(plane, left, right, [&](Index entry, Index a, Index b, Index count) {
    for (Index z = 0; z < count; ++z)
      body(static_cast<std::size_t>(entry + z), static_cast<std::size_t>((a + z) * columns + b + z));
  });
}

/// Copies a plane of the kept node to `values`. The NTK is copied if there is room for it.
template <typename Scalar>
void read_kept(const KeptNode<Scalar>& from, const PlacedPlane& plane, const Index3& left,
               const Index3& right, const Plane<Scalar>& values) {
  for_each_kept(plane, left, right, [&](std::size_t entry, std::size_t source) {
    values.nngp[entry] = from.nngp[source];
    if (values.ntk != nullptr) values.ntk[entry] = from.ntk[source];
  });
}

/// Adds a plane's adjoints to those of the kept node.
template <typename Scalar>
void add_to_kept(const Plane<Scalar>& adjoints, const PlacedPlane& plane, const Index3& left,
                 const Index3& right, KeptNode<Scalar>& to) {
  for_each_kept(plane, left, right, [&](std::size_t entry, std::size_t source) {
    to.nngp_adjoint[source] += adjoints.nngp[entry];
    if (adjoints.ntk != nullptr) to.ntk_adjoint[source] += adjoints.ntk[entry];
  });
}

}  // namespace widelimit
