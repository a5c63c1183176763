// The program's commands: what a command takes is added, and prepared, when it is chosen and not before.
#include "cli/program/commands.hpp"

#include <doctest/doctest.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/program/interrupt.hpp"
#include "cli/program/run_context.hpp"

namespace widelimit::cli {
namespace {

int plain_fills = 0, parent_fills = 0;

void fill_plain(CLI::App& command, const RunContext& /*context*/) {
  ++plain_fills;
  command.add_option("--number");
}

void fill_parent(CLI::App& command, const RunContext& /*context*/) {
  ++parent_fills;
  command.require_subcommand(1);
  command.add_subcommand("child", "Its child")->add_option("file");
}

const Command plain_command{"plain", "Takes a number", fill_plain};
const Command parent_command{"parent", "Has a child", fill_parent};

/// A program of two commands; one at a time, as signals are caught while it lives.
struct TwoCommands {
  Interrupt interrupt;
  std::vector<const Command*> commands{&plain_command, &parent_command};
  RunContext context{.interrupt = interrupt, .command_line = "", .mpi = "", .commands = commands};
  CLI::App program{"About", "program"};

  TwoCommands() {
    plain_fills = parent_fills = 0;
    add_commands(program, context);
  }
  /// Words in the order of a command line.
  void parse(std::vector<std::string> words) {
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    program.parse(std::move(reversed));
  }
};

TEST_CASE("commands: the list of commands fills none") {
  TwoCommands two;
  const std::string help = two.program.help();
  for (const char* text :
       {"plain", "Takes a number", "parent", "Has a child", "program COMMAND --help tells more"})
    CHECK(help.find(text) != std::string::npos);
  CHECK_THROWS_AS(two.parse({"--help"}), CLI::CallForHelp);
  CHECK_THROWS_AS(two.parse({}), CLI::RequiredError);
  CHECK_THROWS_AS(two.parse({"none"}), CLI::ParseError);
  CHECK(plain_fills + parent_fills == 0);
}

TEST_CASE("commands: one that is chosen is filled, once, and no other") {
  {
    TwoCommands two;
    two.parse({"plain", "--number", "3", "--quiet"});
    CHECK(plain_fills == 1);
    CHECK(parent_fills == 0);
  }
  {
    TwoCommands two;
    CHECK_THROWS_AS(two.parse({"parent", "--help"}), CLI::CallForHelp);
    CHECK(two.program.help().find("program parent COMMAND --help tells more") != std::string::npos);
    CHECK(plain_fills == 0);
    CHECK(parent_fills == 1);
  }
  {
    TwoCommands two;
    two.parse({"parent", "child", "plain"});
    CHECK(plain_fills == 0);
    CHECK(parent_fills == 1);
  }
  TwoCommands two;
  CHECK_THROWS_AS(two.parse({"parent"}), CLI::RequiredError);
}

TEST_CASE("commands: all can be filled, those that were chosen not again") {
  TwoCommands two;
  two.parse({"plain"});
  fill_commands(two.program, two.context);
  CHECK(plain_fills == 1);
  CHECK(parent_fills == 1);
  CHECK(two.program.get_subcommand("parent")->get_subcommand("child")->get_option("--quiet") != nullptr);
}

}  // namespace
}  // namespace widelimit::cli
