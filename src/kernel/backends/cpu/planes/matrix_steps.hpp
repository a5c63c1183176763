#pragma once

#include "kernel/backends/cpu/planes/tile_work.hpp"

/// Steps that need a pair's covariance as a whole: products of inputs, and pair stages.
namespace widelimit {

/// Multiplies the inputs of every pair, one matrix product for each.
template <typename Scalar>
void execute(const TileWork<Scalar>& work, const InputStep& step);

/// Applies a pair stage to every pair. While states are recorded, it first prepares the stage's own state.
template <typename Scalar>
void execute(const TileWork<Scalar>& work, const PairStep& step);

}  // namespace widelimit
