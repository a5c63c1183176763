#pragma once

#include "widelimit/gp/resources.hpp"

namespace widelimit::gp {

/// Operations of a solver, in those that take as long as operations of a factorization. For conjugate gradients those
/// of one pass over the matrix.
[[nodiscard]] double solver_flops(const Workload& work, Solver solver);

}  // namespace widelimit::gp
