#pragma once

#include <vector>

#include "gp/solvers/low_rank_preconditioner.hpp"
#include "widelimit/gp/conjugate_gradients.hpp"

namespace widelimit::gp {

/// What solve_shifted() makes its preconditioner of, for several calls. ArgumentError for options out of range.
[[nodiscard]] LowRankKernel preconditioner_of(const KernelOperator& gram,
                                              const ConjugateGradientOptions& options);

/// solve_shifted() with a preconditioner that is there; its pass is not counted.
[[nodiscard]] ShiftedSolutions solve_shifted(const KernelOperator& gram, const LowRankKernel& preconditioner,
                                             const Matrix<double>& b, const std::vector<double>& lambdas,
                                             const ConjugateGradientOptions& options);

}  // namespace widelimit::gp
