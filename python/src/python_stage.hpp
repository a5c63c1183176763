#pragma once

#include <memory>

#include "shared_function.hpp"
#include "widelimit/network/pair_stage.hpp"

namespace widelimit::python {

/// A pair stage from a Python function of matrices: transform(nngp, ntk, variance1, variance2) of a pair's covariances
/// [d, d'] and the variances [d] and [d'] gives the new (nngp, ntk); ntk is None where only the NNGP is computed.
/// adjoint, or null, also gets the adjoints of both results, and gives those of the four arguments.
[[nodiscard]] std::shared_ptr<const PairStage> stage_from_function(const HeldFunction& transform,
                                                                   const HeldFunction* adjoint,
                                                                   StageRules rules);

}  // namespace widelimit::python
