#pragma once

namespace CLI {
class App;
}

namespace widelimit::cli {

struct RunContext;

/// A command of the program. What it takes is added only once it is chosen: other commands prepare nothing.
struct Command {
  const char* name;
  const char* purpose;  ///< What the list of commands says of it.
  /// Adds what it takes, and what is run after the arguments were parsed and reports failure by an exception. `context`
  /// must live as long.
  void (*fill)(CLI::App& command, const RunContext& context);
};

/// Adds the commands of the context by their names; each is filled as soon as the parser meets it.
void add_commands(CLI::App& program, const RunContext& context);

/// Fills the commands that were not chosen too, for what looks at all of them.
void fill_commands(CLI::App& program, const RunContext& context);

// The commands, one file each.
extern const Command gp_command, fit_command, predict_command, gram_command, store_command, explain_command,
    networks_command, devices_command, sde_command, heads_command, propagation_command, check_command,
    doctor_command, rerun_command, completion_command;

}  // namespace widelimit::cli
