// The guide, typed from top to bottom in a folder that holds the inputs of data/.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "cli/program.hpp"

using widelimit::testing::file_text;
using widelimit::testing::lines_of;
using widelimit::testing::ProgramResult;
using widelimit::testing::run_program;
using widelimit::testing::run_script;
using widelimit::testing::TemporaryFolder;

namespace {

const std::filesystem::path source_folder = WIDELIMIT_SOURCE_DIR;

/// A command of a page, and what the page says that it prints; empty where it says nothing.
struct TypedCommand {
  std::string arguments;
  std::string printed;
};

std::string trimmed_end(std::string text) {
  text.erase(text.find_last_not_of(" \n") + 1);
  return text;
}

/// Indented lines that begin with the program's name are commands; an indented block after a line that begins
/// with "prints" is what the last one prints, up to the next line that is not indented or the next command.
std::vector<TypedCommand> commands_of(const std::string& page) {
  std::vector<TypedCommand> commands;
  const std::string prompt = "    widelimit ";
  bool printing = false, in_code = false;
  for (const std::string& line : lines_of(page)) {
    if (line.starts_with("```")) in_code = !in_code;
    if (in_code || line.starts_with("```")) commands.push_back({});  // Prints of code are not the program's.
    if (line.starts_with("prints"))
      printing = true;
    else if (line.starts_with(prompt))
      commands.push_back({.arguments = line.substr(prompt.size()), .printed = {}});
    else if (printing && !commands.empty() && (line.starts_with("    ") || line.empty()))
      commands.back().printed += line.substr(std::min<std::size_t>(4, line.size())) + "\n";
    if ((!line.empty() && line[0] != ' ' && !line.starts_with("prints")) || line.starts_with(prompt))
      printing = false;
  }
  std::erase_if(commands, [](const TypedCommand& command) { return command.arguments.empty(); });
  for (TypedCommand& command : commands) {
    command.printed.erase(0, command.printed.find_first_not_of('\n'));
    command.printed = trimmed_end(command.printed);
  }
  return commands;
}

/// Seconds, the memory of a machine and what its threads take differ from run to run.
std::string without_measurements(const std::string& text) {
  const std::string rows =
      std::regex_replace(text, std::regex(" +\\d+\\.\\d\\d +\\d+\\.\\d\\d(\n|$)"), " S S$1");
  return trimmed_end(
      std::regex_replace(rows, std::regex("\\([0-9.e-]+ GB (.*)of [0-9.]+ GB\\)"), "(M GB $1of M GB)"));
}

ProgramResult run_in(const TemporaryFolder& folder, const std::string& arguments) {
  return run_script("cd '" + folder.string() + "' && \"$WIDELIMIT\" " + arguments);
}

void lay_inputs(const TemporaryFolder& folder) {
  std::filesystem::create_directory_symlink(source_folder / "data", folder / "data");
  std::filesystem::create_directory(folder / "out");
}

/// Whether a text is one JSON value, or one a line.
bool is_json(const std::string& text) {
  if (nlohmann::json::accept(text)) return true;
  const auto lines = lines_of(text);
  return std::all_of(lines.begin(), lines.end(),
                     [](const std::string& line) { return nlohmann::json::accept(line); });
}

/// Commands that have no commands below them, as "sde law".
void add_leaves(const std::string& command, std::set<std::string>& leaves) {
  bool listed = false, any = false;
  for (const std::string& line : lines_of(run_program(command + " --help").output)) {
    if (!line.starts_with("  ")) listed = line.starts_with("Subcommands:");
    if (!listed || !line.starts_with("  ") || line.starts_with("   ")) continue;
    any = true;
    add_leaves((command.empty() ? "" : command + " ") + line.substr(2, line.find(' ', 2) - 2), leaves);
  }
  if (!any) leaves.insert(command);
}

}  // namespace

TEST_CASE("guide: how a page is read") {
  const auto commands = commands_of(
      "Text\n\n    widelimit gp --a\n\nprints\n\n    one\n\n      two\n\nand\n\n    widelimit store\n");
  REQUIRE(commands.size() == 2);
  CHECK(commands[0].arguments == "gp --a");
  CHECK(commands[0].printed == "one\n\n  two");
  CHECK(commands[1].printed == "");
  CHECK(without_measurements("  nngp  1e-2   0.10     2.00\n") ==
        without_measurements("  nngp  1e-2   7.41     0.03\n"));
  CHECK(without_measurements("solver: cg, given (0.02 GB for 48 inputs, of 25.3 GB)\n") ==
        without_measurements("solver: cg, given (5.7e-05 GB for 48 inputs, of 8 GB)\n"));
  CHECK(without_measurements("  nngp  1e-2   0.10     2.00\n") !=
        without_measurements("  nngp  1e-3   0.10     2.00\n"));
}

TEST_CASE("guide: every command runs on its input from data/, and prints what the page says") {
  const TemporaryFolder folder;
  lay_inputs(folder);
  int compared = 0;
  for (const TypedCommand& command : commands_of(file_text(source_folder / "docs/guide.md"))) {
    CAPTURE(command.arguments);
    const ProgramResult result = run_in(folder, command.arguments);
    CAPTURE(result.errors);
    CHECK(result.code == 0);
    if (command.printed.empty()) continue;
    CHECK(without_measurements(result.output) == without_measurements(command.printed));
    ++compared;
  }
  CHECK(compared == 3);
}

TEST_CASE("guide: with --json every command that prints results prints nothing but JSON") {
  const TemporaryFolder folder;
  lay_inputs(folder);
  int asked = 0;
  for (const TypedCommand& command : commands_of(file_text(source_folder / "docs/guide.md"))) {
    CAPTURE(command.arguments);
    const bool takes =
        run_in(folder, command.arguments + " --help").output.find("\n  --json ") != std::string::npos;
    const ProgramResult result = run_in(folder, command.arguments + (takes ? " --json" : ""));
    CAPTURE(result.errors);
    CHECK(result.code == 0);
    if (!takes) continue;
    CAPTURE(result.output);
    CHECK(is_json(result.output));
    ++asked;
  }
  CHECK(asked > 35);
}

TEST_CASE("guide: no command is left out") {
  std::set<std::string> leaves;
  add_leaves("", leaves);
  CHECK(leaves.size() > 40);
  const auto commands = commands_of(file_text(source_folder / "docs/guide.md"));
  for (const std::string& leaf : leaves) {
    CAPTURE(leaf);
    CHECK(std::any_of(commands.begin(), commands.end(), [&](const TypedCommand& command) {
      return (command.arguments + " ").starts_with(leaf + " ");
    }));
  }
}
