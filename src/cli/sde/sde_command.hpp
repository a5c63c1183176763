#pragma once

#include "cli/program/run_context.hpp"

namespace CLI {
class App;
}

namespace widelimit::cli {

/// Adds `sde simulate|network|compare|stopping-time|output|entropy|explosion|law|flow|gradients|coefficients`. Each
/// command's --help lists the fields of its configuration.
void add_sde_command(CLI::App& program, const RunContext& context);

}  // namespace widelimit::cli
