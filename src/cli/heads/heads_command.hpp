#pragma once

#include "cli/program/run_context.hpp"

namespace CLI {
class App;
}

namespace widelimit::cli {

/// heads EXPERIMENT CONFIG [--out FILE] [--plot FILE]
void add_heads_command(CLI::App& app, const RunContext& context);

}  // namespace widelimit::cli
