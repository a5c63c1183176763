#pragma once

#include <cstddef>
#include <vector>

#include "kernel/plan/pair_geometry.hpp"
#include "kernel/planes/plane.hpp"

namespace widelimit {

/// One plane of an instruction, or one row of pairs behind the positions: what it is on the way forth, and the adjoints
/// on the way back. Entries of a plane lie row by row, without gaps.
template <typename Scalar>
struct TapeEntry {
  Box box;
  std::vector<Scalar> nngp;
  std::vector<Scalar> ntk;  ///< Empty when only the NNGP is wanted.
  std::vector<Scalar> nngp_adjoint;
  std::vector<Scalar> ntk_adjoint;
  /// What a row stage read: its auxiliary arrays and the variances, of the plane's left and right positions, one array
  /// behind the other, the variances last.
  std::vector<Scalar> left;
  std::vector<Scalar> right;

  [[nodiscard]] std::size_t size() const { return nngp.size(); }

  void place(const Box& at, bool with_ntk) {
    box = at;
    resize(static_cast<std::size_t>(box.size()), with_ntk);
  }
  void resize(std::size_t entries, bool with_ntk) {
    nngp.resize(entries);
    ntk.resize(with_ntk ? entries : 0);
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

/// Calls body(entry, left position, right position, count) for the rows of a plane: entry + i pairs position
/// left + i with right + i, for i < count.
template <typename Body>
void for_each_row_of(const Box& box, const Index3& left_sizes, const Index3& right_sizes, const Body& body) {
  Index entry = 0;
  for_each_row(box.extent, [&](Index x, Index y) {
    const Index3 a{box.origin[0] + x, box.origin[1] + y, box.origin[2]};
    const Index3 b{a[0] + box.offset[0], a[1] + box.offset[1], a[2] + box.offset[2]};
    body(entry, position_number(a, left_sizes), position_number(b, right_sizes), box.extent[2]);
    entry += box.extent[2];
  });
}

/// A node that is kept whole: matrices [rows, columns] over the positions of the pair.
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

}  // namespace widelimit
