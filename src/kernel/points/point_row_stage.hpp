#pragma once

#include "kernel/points/point_memory.hpp"
#include "kernel/points/point_rows.hpp"
#include "widelimit/network/row_stage.hpp"

namespace widelimit {

/// Applies a row stage to rows of pairs, in place: inputs with themselves by the stage's rule for that, and, where
/// they are perfectly correlated (`keeps_multiples`), multiples by that for them.
template <typename Scalar>
void apply_row_stage(const RowStage& stage, const PointRows<Scalar>& rows, const PointArrays<Scalar>& arrays,
                     bool keeps_multiples, const Plane<Scalar>& target);

}  // namespace widelimit
