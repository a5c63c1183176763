#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "widelimit/gp/resources.hpp"

namespace widelimit::cli {

/// A command with inputs of a number that was asked for, and what it takes.
struct ExplainedRun {
  std::string command;
  gp::ResourcePlan plan;
};

/// `gram` and `gp`, each without and with a store, and `fit` for one kernel, as far as the solver that is given, or
/// chosen by memory, is among them. `flops_a_second`: gp::measure_flops(), or 0 for no times.
[[nodiscard]] std::vector<ExplainedRun> explain_runs(const gp::Workload& prediction,
                                                     std::optional<gp::Solver> solver,
                                                     const gp::MemoryRoom& room, double flops_a_second);

/// A line for each run, its memory by purpose, and what to do where it does not fit.
[[nodiscard]] std::string to_string(const std::vector<ExplainedRun>& runs, Index inputs,
                                    const gp::MemoryRoom& room);

[[nodiscard]] nlohmann::json as_json(const std::vector<ExplainedRun>& runs);

}  // namespace widelimit::cli
