#pragma once

#include "cli/program/run_context.hpp"
#include "widelimit/results/experiment.hpp"

namespace CLI {
class App;
}

namespace widelimit::cli {

/// Adds a subcommand an experiment of a theory, with the fields in its help. Those that name files write a folder
/// (--out FOLDER, --force, --no-pictures), others a table (--out FILE, --plot). Where a configuration asks for a scan,
/// the points that are done stand beside --out until the last is.
void add_experiments(CLI::App& command, const results::Theory& theory, const RunContext& context);

}  // namespace widelimit::cli
