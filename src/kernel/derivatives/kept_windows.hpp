#pragma once

#include "kernel/derivatives/tape_entry.hpp"
#include "kernel/planes/affine.hpp"

/// Entries of a kept node that windows see which are no plane of it.
namespace widelimit {

/// Calls body(entry of the plane, entry of the kept matrix) for all that a circular convolution sums; the plane is of
/// one piece. `left`, `right`: sizes before the convolution.
template <typename Body>
void for_each_wrapped(const Affine& affine, const PlacedPlane& plane, const Index3& left, const Index3& right,
                      const Body& body) {
  const auto wrapped = [&](Index position, Index tap, std::size_t k, Index front, Index size) {
    return ((affine.window.stride[k] * position + tap - front) % size + size) % size;
  };
  const Box box = piece_box(plane.axis, {0, 0, 0});
  const auto for_each_tap = [&](const Index3& a, std::size_t entry) {
    for_each_row(affine.window.size, [&](Index u, Index v) {
      for (Index w = 0; w < affine.window.size[2]; ++w) {
        const Index3 tap{u, v, w};
        Index3 source_left, source_right;
        for (std::size_t k = 0; k < 3; ++k) {
          source_left[k] = wrapped(a[k], tap[k], k, affine.left_front[k], left[k]);
          source_right[k] = wrapped(a[k] + box.offset[k], tap[k], k, affine.right_front[k], right[k]);
        }
        body(entry, static_cast<std::size_t>(position_number(source_left, left) * product(right) +
                                             position_number(source_right, right)));
      }
    });
  };
  for_each_row(box.extent, [&](Index x, Index y) {
    for (Index z = 0; z < box.extent[2]; ++z)
      for_each_tap({box.origin[0] + x, box.origin[1] + y, box.origin[2] + z},
                   static_cast<std::size_t>(plane.layout.at(x, y) + z));
  });
}

/// Calls body(entry of the plane, entry of the kept matrix) for all that a plane of the kept node has.
template <typename Body>
void for_each_kept(const PlacedPlane& plane, const Index3& left, const Index3& right, const Body& body) {
  const Index columns = product(right);
  for_each_row_of(plane, left, right, [&](Index entry, Index a, Index b, Index count) {
    for (Index z = 0; z < count; ++z)
      body(static_cast<std::size_t>(entry + z), static_cast<std::size_t>((a + z) * columns + b + z));
  });
}

/// Copies what a plane of the kept node has to `values`; the NTK where there is room for it.
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
