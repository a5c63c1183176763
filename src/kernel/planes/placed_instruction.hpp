#pragma once

#include <optional>

#include "kernel/planes/affine.hpp"
#include "kernel/planes/auxiliary_arrays.hpp"
#include "kernel/planes/plane.hpp"
#include "kernel/planes/vector_padding.hpp"
#include "widelimit/network/row_stage.hpp"

namespace widelimit {

/// An instruction of a run, and where its plane and its auxiliary arrays lie at the current offset.
template <typename Scalar>
struct PlacedInstruction {
  const Instruction* instruction = nullptr;
  const PlacedPlane* plane = nullptr;      ///< Others may have the same.
  Plane<Scalar> planes{nullptr, nullptr};  ///< Where the result goes.
  bool skips_ntk = false;                  ///< It is zero, all readers know that, and it is not written.
  std::optional<Affine> affine;
  numerics::PlaneWindows windows{};  ///< Of a strided convolution.
  std::optional<AuxiliaryArrays<Scalar>> arrays;

  [[nodiscard]] const PlacedPlane& at() const { return *plane; }
  /// Its planes as others read them: the ntk is null where it is not written.
  [[nodiscard]] Plane<Scalar> result() const { return {planes.nngp, skips_ntk ? nullptr : planes.ntk}; }
  /// Numbers of a stack of its planes, padded.
  [[nodiscard]] std::size_t row_size(Index stacked) const {
    return static_cast<std::size_t>(padded(stacked * at().layout.length));
  }
  /// Numbers for which its arrays hold what belongs to a stack of its planes, padded.
  [[nodiscard]] std::size_t array_row_size(Index stacked) const {
    return arrays->are_guarded() ? row_size(stacked) : static_cast<std::size_t>(padded(at().end_of_rows()));
  }
  /// Puts zeros after the rows of a result where the arrays went on with other numbers.
  void clear_behind_rows(const Plane<Scalar>& target) const {
    if (arrays->are_guarded()) return;
    const Index end = at().end_of_rows();
    fill_plane(target + end, static_cast<std::size_t>(padded(at().layout.length) - end), Scalar{0},
               Scalar{0});
  }
  /// Some planes with the arrays of the current stack.
  [[nodiscard]] numerics::DualRow<Scalar> dual_row(Index stacked, const Plane<Scalar>& row) const {
    return {row.nngp, row.ntk, arrays->rows(Side::left), arrays->rows(Side::right), array_row_size(stacked)};
  }
};

}  // namespace widelimit
