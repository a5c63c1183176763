#pragma once

#include <CLI/CLI.hpp>

namespace widelimit::cli {

/// Adds `sde simulate|network|compare|stopping-time`. The configuration fields are listed in each command's
/// --help.
void add_sde_command(CLI::App& program);

}  // namespace widelimit::cli
