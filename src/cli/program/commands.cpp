#include "cli/program/commands.hpp"

#include <CLI/CLI.hpp>
#include <string>

#include "cli/output/progress_bar.hpp"
#include "cli/program/run_context.hpp"

namespace widelimit::cli {
namespace {

/// To every command that has none below it.
void add_quiet_option(CLI::App& command) {
  const auto below = command.get_subcommands([](CLI::App*) { return true; });
  for (CLI::App* one : below) add_quiet_option(*one);
  if (below.empty())
    command.add_flag_callback("--quiet", silence_progress,
                              "Show no progress; results, warnings and errors are still printed");
}

/// Has the help of everything that has commands say how to get theirs.
void point_to_commands(CLI::App& app, const std::string& path) {
  const auto below = app.get_subcommands([](CLI::App*) { return true; });
  if (below.empty()) return;
  const std::string pointer = path + " COMMAND --help tells more about a command.";
  app.footer(app.get_footer().empty() ? pointer : pointer + "\n\n" + app.get_footer());
  for (CLI::App* one : below) point_to_commands(*one, path + " " + one->get_name());
}

void fill_command(CLI::App& app, const Command& command, const RunContext& context) {
  command.fill(app, context);
  point_to_commands(app, app.get_parent()->get_name() + " " + command.name);
  add_quiet_option(app);
}

}  // namespace

void add_commands(CLI::App& program, const RunContext& context) {
  program.require_subcommand(1);
  for (const Command* command : context.commands) {
    CLI::App* app = program.add_subcommand(command->name, command->purpose);
    app->preparse_callback([app, command, &context](std::size_t) { fill_command(*app, *command, context); });
  }
  point_to_commands(program, program.get_name());
}

void fill_commands(CLI::App& program, const RunContext& context) {
  for (const Command* command : context.commands)
    if (CLI::App* app = program.get_subcommand(command->name); !app->parsed())
      fill_command(*app, *command, context);
}

}  // namespace widelimit::cli
