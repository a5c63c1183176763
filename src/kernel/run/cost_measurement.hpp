#pragma once

#include <vector>

#include "kernel/backends/gram_plan.hpp"
#include "widelimit/kernel/explain.hpp"

namespace widelimit {

/// What gram() takes under one plan.
struct MeasuredCosts {
  Cost pair;
  Cost input;                            ///< Making the state of one.
  Cost start;                            ///< What is made once: tables, threads, workspaces.
  std::vector<double> seconds_per_line;  ///< For a pair, summed over threads; empty unless asked for.
};

/// Runs inputs of `x`, some of them if there are many, and tiles of their pairs as a Gram matrix of `inputs` inputs has
/// them, for about so many seconds; a tile at least. All threads work together, each measured by itself. Throws as
/// gram() does, and Cancelled.
template <typename Result>
[[nodiscard]] MeasuredCosts measure_costs(const GramPlan& plan, const Inputs<Result>& x,
                                          const GramOptions& options, double seconds, StepTimes times);

/// How many inputs measure_costs() can use.
[[nodiscard]] Index inputs_to_measure(const GramPlan& plan);

}  // namespace widelimit
