#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "widelimit/gp/selection.hpp"

namespace widelimit::cli {

/// Adds --criterion: what regularisers and hyperparameters are chosen by.
void add_criterion_option(CLI::App& command, std::optional<gp::Criterion>& criterion,
                          const std::string& otherwise);

/// As --criterion says it.
[[nodiscard]] const char* criterion_name(gp::Criterion criterion);

}  // namespace widelimit::cli
