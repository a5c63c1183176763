#include <CLI/CLI.hpp>

#include "cli/program/commands.hpp"
#include "cli/theories/theory_command.hpp"
#include "widelimit/covariance_sde/experiments.hpp"

namespace widelimit::cli {
namespace {

void fill_sde_command(CLI::App& command, const RunContext& context) {
  add_experiments(command, covariance_sde::experiments(), context);
}

}  // namespace

const Command sde_command{"sde", "The shaped transformer: covariance SDE and finite networks",
                          fill_sde_command};

}  // namespace widelimit::cli
