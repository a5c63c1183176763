#pragma once

#include "cli/program/run_context.hpp"

namespace CLI {
class App;
}

namespace widelimit::cli {

/// Adds `sde simulate|network|compare|stopping-time|output|entropy|explosion|law|flow|gradients|coefficients`. The configuration
/// fields are listed in each command's --help.
void add_sde_command(CLI::App& program, const RunContext& context);

}  // namespace widelimit::cli
