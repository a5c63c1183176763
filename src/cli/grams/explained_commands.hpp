#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "widelimit/gp/resources.hpp"

namespace widelimit::cli {

/// A command with inputs of a number that was asked for, and what it takes.
struct ExplainedCommand {
  std::string command;
  gp::ResourcePlan plan;
};

/// `gram` and `gp`, each without and with a store, and `fit` for one kernel, as far as the solver that is given, or
/// chosen by memory, is among them. `flops_a_second`: gp::measure_flops(), or 0 for no times.
[[nodiscard]] std::vector<ExplainedCommand> explained_commands(const gp::Workload& prediction,
                                                               std::optional<gp::Solver> solver,
                                                               const gp::MemoryRoom& room,
                                                               double flops_a_second);

/// A line for each run, its memory by purpose, and what to do where it does not fit.
[[nodiscard]] std::string to_string(const std::vector<ExplainedCommand>& runs, Index inputs,
                                    const gp::MemoryRoom& room);

[[nodiscard]] nlohmann::json as_json(const std::vector<ExplainedCommand>& runs);

}  // namespace widelimit::cli
