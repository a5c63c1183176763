#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "cli/options/ranges.hpp"
#include "cli/output/result_text.hpp"
#include "cli/program/commands.hpp"
#include "cli/program/completion_table.hpp"

namespace widelimit::cli {

namespace {

void fill_completion_command(CLI::App& command, const RunContext& context) {
  auto shell = std::make_shared<std::string>();
  add_value(command, "shell", *shell, "The shell", CLI::IsMember({"bash", "zsh", "fish"}).description(""),
            "bash|zsh|fish")
      ->required();
  command.footer(
      "For the shell that is open:\n"
      "  source <(widelimit completion bash)\n"
      "\nFor all shells to come:\n"
      "  widelimit completion bash > ~/.local/share/bash-completion/completions/widelimit\n"
      "  widelimit completion zsh > \"${fpath[1]}/_widelimit\"\n"
      "  widelimit completion fish > ~/.config/fish/completions/widelimit.fish");
  add_json_option(command);
  command.callback([shell, &command, &context] {
    CLI::App& program = *command.get_parent();
    fill_commands(program, context);
    const std::string script = completion_script(*shell, program.get_name(), completion_table(program));
    if (prints_json()) return print_result({{"shell", *shell}, {"script", script}});
    std::fputs(script.c_str(), stdout);
  });
}

}  // namespace

const Command completion_command{
    "completion",
    "Prints a script by which a shell completes the commands, options and words of this program",
    fill_completion_command};

}  // namespace widelimit::cli
