#pragma once

#include <optional>

#include "kernel/backends/cpu/planes/affine.hpp"
#include "kernel/backends/cpu/planes/auxiliary_arrays.hpp"
#include "kernel/backends/cpu/planes/plane.hpp"
#include "kernel/vector_padding.hpp"
#include "widelimit/network/row_stage.hpp"

namespace widelimit {

/// An instruction of a chain, with the place of its plane and of its auxiliary arrays at the current offset.
template <typename Scalar>
struct PlacedInstruction {
  const Instruction* instruction = nullptr;
  const PlacedPlane* plane = nullptr;      ///< Instructions with equal sizes and offsets share one.
  Plane<Scalar> planes{nullptr, nullptr};  ///< Where the result goes.
  bool skips_ntk = false;                  ///< All readers know that it is zero; it is not written.
  std::optional<Affine> affine;
  numerics::PlaneWindows windows{};  ///< Used by strided convolutions.
  std::optional<AuxiliaryArrays<Scalar>> arrays;

  [[nodiscard]] const PlacedPlane& at() const { return *plane; }
  /// Its planes as other instructions read them. The ntk is null if it is not written.
  [[nodiscard]] Plane<Scalar> result() const { return {planes.nngp, skips_ntk ? nullptr : planes.ntk}; }
  /// The numbers of a stack of its planes, padded.
  [[nodiscard]] std::size_t row_size(Index stacked) const {
    return static_cast<std::size_t>(padded(stacked * at().layout.length));
  }
  /// The numbers of a stack of its planes, padded, for which its arrays have what belongs to them.
  [[nodiscard]] std::size_t array_row_size(Index stacked) const {
    return arrays->are_guarded() ? row_size(stacked) : static_cast<std::size_t>(padded(at().end_of_rows()));
  }
  /// Writes zeros after the rows of a result if the arrays continued with numbers of other positions there.
  void clear_behind_rows(const Plane<Scalar>& target) const {
    if (arrays->are_guarded()) return;
    const Index end = at().end_of_rows();
    fill_plane(target + end, static_cast<std::size_t>(padded(at().layout.length) - end), Scalar{0},
               Scalar{0});
  }
  /// Some planes, together with the arrays of the current stack.
  [[nodiscard]] numerics::DualRow<Scalar> dual_row(Index stacked, const Plane<Scalar>& row) const {
    return {row.nngp, row.ntk, arrays->rows(Side::left), arrays->rows(Side::right), array_row_size(stacked)};
  }
};

}  // namespace widelimit
