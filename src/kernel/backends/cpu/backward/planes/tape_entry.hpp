#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernel/backends/cpu/planes/placed_plane.hpp"
#include "kernel/backends/cpu/planes/plane.hpp"
#include "kernel/vector_padding.hpp"

namespace widelimit {

/// Numbers with a margin of zeros on both sides, so that windows may reach over the ends.
template <typename Scalar>
class GuardedRow {
 public:
  /// Sets the size. What the row holds is not defined afterwards, but its margins are zero.
  void resize(std::size_t size, std::size_t margin = 0) {
    size_ = size;
    margin_ = margin;
    numbers_.resize(size + 2 * margin);
    std::fill_n(numbers_.begin(), margin, Scalar{0});
    std::fill_n(numbers_.end() - static_cast<std::ptrdiff_t>(margin), margin, Scalar{0});
  }
  void fill(Scalar value) { std::fill_n(data(), size_, value); }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] Scalar* data() { return numbers_.data() + margin_; }
  [[nodiscard]] const Scalar* data() const { return numbers_.data() + margin_; }
  [[nodiscard]] Scalar& operator[](std::size_t i) { return data()[i]; }
  [[nodiscard]] const Scalar& operator[](std::size_t i) const { return data()[i]; }
  [[nodiscard]] const Scalar* begin() const { return data(); }
  [[nodiscard]] const Scalar* end() const { return data() + size_; }

 private:
  std::vector<Scalar> numbers_;
  std::size_t size_ = 0;
  std::size_t margin_ = 0;
};

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
