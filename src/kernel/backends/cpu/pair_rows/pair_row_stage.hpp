#pragma once

#include "kernel/backends/cpu/pair_rows/pair_row_memory.hpp"
#include "kernel/backends/cpu/pair_rows/pair_rows.hpp"
#include "widelimit/network/row_stage.hpp"

namespace widelimit {

/// Applies a row stage to rows of pairs, in place. Inputs with themselves obey the stage's rule for that. Multiples
/// of each other obey its rule for multiples, if they are perfectly correlated before the stage (`keeps_multiples`).
template <typename Scalar>
void apply_row_stage(const RowStage& stage, const PairRows<Scalar>& rows, const PairRowArrays<Scalar>& arrays,
                     bool keeps_multiples, const Plane<Scalar>& target);

}  // namespace widelimit
