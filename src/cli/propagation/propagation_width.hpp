#pragma once

#include <optional>

#include "cli/propagation/propagation_model.hpp"

/// --width of the commands that give exponents: how far networks of that width scatter about them.
namespace widelimit::cli {

struct NetworkWidth {
  std::optional<propagation::Index> width;
};

void add_width_option(CLI::App& command, NetworkWidth& given);

/// ArgumentError if --width stands beside --causal.
void check_width(const NetworkWidth& given, const PropagationModel& model);

/// The settings of a run with the width among them, if it was given.
[[nodiscard]] nlohmann::json with_width(nlohmann::json settings, const NetworkWidth& given);

/// Adds the intervals of networks of this width, and the depth up to which the limit describes them, to a summary of
/// `parameters`, and warns where the network is deeper. Nothing without --width.
void add_width_summary(nlohmann::json& summary, const NetworkWidth& given,
                       const propagation::Parameters& parameters, double depth);

/// Says of the summary's depth why it is null, where it is.
void note_limit_depth(ResultTable& table, const nlohmann::json& summary);

}  // namespace widelimit::cli
