#pragma once

#include "cli/output_folder.hpp"

namespace CLI {
class App;
}

namespace widelimit::cli {

/// Adds --force, which keeps other files.
void add_force_option(CLI::App& command, OtherFiles& others);

}  // namespace widelimit::cli
