#pragma once

#include "kernel/backends/cpu/planes/placed_instruction.hpp"
#include "kernel/backends/cpu/planes/tile_work.hpp"

/// What happens to a stack of planes in instructions that have auxiliary arrays.
namespace widelimit {

/// Writes K = sum over channels of x x' / C for a stack's inputs; their NTK is zero.
template <typename Scalar>
void multiply_features(const PlacedInstruction<Scalar>& input, Index stacked);

/// Applies a row stage to the planes of another instruction, which may be in the same slot.
template <typename Scalar>
void apply_row_stage(const RowStage& stage, const Plane<Scalar>& source, const PlacedInstruction<Scalar>& to,
                     const Stack& stack);

/// Prepares the auxiliary arrays of a row stage from an input's variances, which are the plane of offset 0 of the
/// input with itself, and writes them to its state. Throws NumericalError if a variance leaves the range.
template <typename Scalar>
void record_row_state(const RowStage& stage, const Plane<Scalar>& variances,
                      const PlacedInstruction<Scalar>& at, InputState<Scalar>& state);

}  // namespace widelimit
