#pragma once

#include "kernel/planes/tile_run.hpp"

/// Steps that need a pair's covariance as a whole: products of inputs, and pair stages.
namespace widelimit {

/// The products of every pair's inputs, one matrix product a pair.
template <typename Scalar>
void execute(const TileRun<Scalar>& run, const InputStep& step);

/// Applies a pair stage to every pair; where states are recorded, prepares the stage's own before.
template <typename Scalar>
void execute(const TileRun<Scalar>& run, const PairStep& step);

}  // namespace widelimit
