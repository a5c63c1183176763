#pragma once

#include <memory>
#include <string>

#include "distributed/rank_solver.hpp"
#include "widelimit/gp/kernel_solver.hpp"

namespace widelimit::distributed {

/// Solves on all ranks together, each of which gets all predictions; the Gram matrices are RankGrams.
[[nodiscard]] std::unique_ptr<gp::KernelSolver> rank_kernel_solver(const RankSolver& ranks,
                                                                   const std::string& kernel,
                                                                   gp::GramSources& grams,
                                                                   const gp::SolverTargets& targets,
                                                                   const gp::SolverOptions& options);

}  // namespace widelimit::distributed
