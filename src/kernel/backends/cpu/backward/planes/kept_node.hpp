#pragma once

#include <vector>

#include "kernel/backends/cpu/planes/placed_plane.hpp"
#include "kernel/backends/cpu/planes/plane.hpp"

namespace widelimit {

/// Calls body(entry, left position, right position, count) for the rows of a plane: entry + i pairs position
/// left + i with right + i, for i < count.
template <typename Body>
void for_each_row_of(const PlacedPlane& plane, const Index3& left_sizes, const Index3& right_sizes,
                     const Body& body) {
  plane.for_each_piece([&](const Box& box, Index begin) {
    if (box.empty()) return;
    for_each_row(box.extent, [&](Index x, Index y) {
      const Index3 a{box.origin[0] + x, box.origin[1] + y, box.origin[2]};
      const Index3 b{a[0] + box.offset[0], a[1] + box.offset[1], a[2] + box.offset[2]};
      body(begin + plane.layout.at(x, y), position_number(a, left_sizes), position_number(b, right_sizes),
           box.extent[2]);
    });
  });
}

/// A node that is kept as a whole: matrices [rows, columns] over the positions of the pair, row-major, and their
/// adjoints.
template <typename Scalar>
struct KeptNode {
  Index rows = 0;
  Index columns = 0;
  std::vector<Scalar> nngp;
  std::vector<Scalar> ntk;
  std::vector<Scalar> nngp_adjoint;
  std::vector<Scalar> ntk_adjoint;

  void clear(bool with_ntk) {
    nngp.assign(static_cast<std::size_t>(rows * columns), Scalar{0});
    ntk.assign(with_ntk ? nngp.size() : 0, Scalar{0});
  }
  void clear_adjoint() {
    nngp_adjoint.assign(nngp.size(), Scalar{0});
    ntk_adjoint.assign(ntk.size(), Scalar{0});
  }
  [[nodiscard]] Plane<Scalar> value() { return {nngp.data(), ntk.empty() ? nullptr : ntk.data()}; }
  [[nodiscard]] Plane<Scalar> adjoint() {
    return {nngp_adjoint.data(), ntk_adjoint.empty() ? nullptr : ntk_adjoint.data()};
  }
};

/// Kept nodes of the pairs of a block: [pair][node].
template <typename Scalar>
using KeptNodes = std::vector<std::vector<KeptNode<Scalar>>>;

}  // namespace widelimit
