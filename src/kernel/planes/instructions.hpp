#pragma once

#include "kernel/planes/placed_instruction.hpp"
#include "kernel/planes/tile_run.hpp"

/// What happens to a stack of planes in instructions that have auxiliary arrays.
namespace widelimit {

/// The mean product of the features of a stack's inputs; their NTK is zero.
template <typename Scalar>
void multiply_features(const PlacedInstruction<Scalar>& input, Index stacked);

/// Applies a row stage to the planes of another instruction, which may be its own.
template <typename Scalar>
void apply_row_stage(const RowStage& stage, const Plane<Scalar>& source, const PlacedInstruction<Scalar>& to,
                     const Stack& stack);

/// Prepares the auxiliary arrays of a row stage from an input's variances, the plane of offset 0 with itself,
/// and writes them to its state. Throws NumericalError where a variance is not finite.
template <typename Scalar>
void record_row_state(const RowStage& stage, const Plane<Scalar>& variances,
                      const PlacedInstruction<Scalar>& at, InputState<Scalar>& state);

}  // namespace widelimit
