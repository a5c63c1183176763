#pragma once

#include <cstddef>

#include "kernel/backends/cpu/backward/planes/guarded_row.hpp"
#include "kernel/backends/cpu/planes/placed_plane.hpp"
#include "kernel/backends/cpu/planes/plane.hpp"
#include "kernel/vector_padding.hpp"

namespace widelimit {

/// How far windows reach over the ends of a plane, and one vector more, since vector loops read whole vectors.
[[nodiscard]] inline std::size_t margin_around(const PlaneLayout& layout) {
  return static_cast<std::size_t>(padded(layout.margin()) + row_padding);
}

/// The values of an instruction and their adjoints, in memory of its own: of one plane, guards included, or of a row
/// of pairs after the positions.
template <typename Scalar>
struct TapeEntry {
  PlacedPlane plane;  ///< Used for planes only.
  GuardedRow<Scalar> nngp;
  GuardedRow<Scalar> ntk;  ///< Empty when only the NNGP is wanted.
  GuardedRow<Scalar> nngp_adjoint;
  GuardedRow<Scalar> ntk_adjoint;
  [[nodiscard]] std::size_t size() const { return nngp.size(); }

  void resize(std::size_t size, bool with_ntk, std::size_t margin = 0) {
    nngp.resize(size, margin);
    ntk.resize(with_ntk ? size : 0, margin);
  }
  /// Makes room for the plane and for what windows read around it.
  void resize_for_plane(bool with_ntk) {
    resize(static_cast<std::size_t>(plane.is_empty ? 0 : plane.layout.length), with_ntk,
           margin_around(plane.layout));
  }
  [[nodiscard]] Plane<Scalar> value() { return {nngp.data(), ntk.empty() ? nullptr : ntk.data()}; }
  [[nodiscard]] Plane<Scalar> adjoint() {
    return {nngp_adjoint.data(), ntk_adjoint.empty() ? nullptr : ntk_adjoint.data()};
  }

  /// Sets the adjoints to 0; all readers add to them.
  void clear_adjoint() {
    const std::size_t margin = margin_around(plane.layout);
    nngp_adjoint.resize(nngp.size(), margin);
    ntk_adjoint.resize(ntk.size(), margin);
    nngp_adjoint.fill(0);
    ntk_adjoint.fill(0);
  }
};

}  // namespace widelimit
