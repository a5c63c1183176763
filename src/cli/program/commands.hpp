#pragma once

#include "cli/program/run_context.hpp"

namespace CLI {
class App;
}

/// The program's commands, one file each. Each function adds its command to the program; the command runs
/// when the arguments are parsed and reports failure by an exception. `context` must live as long.
namespace widelimit::cli {

void add_gram_command(CLI::App& program, const RunContext& context);
void add_gp_command(CLI::App& program, const RunContext& context);
void add_fit_command(CLI::App& program, const RunContext& context);
void add_predict_command(CLI::App& program, const RunContext& context);
void add_store_command(CLI::App& program, const RunContext& context);
void add_explain_command(CLI::App& program, const RunContext& context);
void add_networks_command(CLI::App& program, const RunContext& context);
void add_sde_command(CLI::App& program, const RunContext& context);
void add_heads_command(CLI::App& program, const RunContext& context);
void add_propagation_command(CLI::App& program, const RunContext& context);
void add_check_command(CLI::App& program, const RunContext& context);
void add_completion_command(CLI::App& program, const RunContext& context);
void add_devices_command(CLI::App& program, const RunContext& context);
void add_doctor_command(CLI::App& program, const RunContext& context);

}  // namespace widelimit::cli
