#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

/// What may stand where on the command line, for the shells' completion.
namespace widelimit::cli {

/// A word to choose: a command below another, or a value of an option.
struct CompletedName {
  std::string name;         ///< "network".
  std::string description;  ///< One line, or empty.
};

struct CompletedOption {
  std::string name;         ///< "--data".
  std::string description;  ///< One line.
  bool takes_value = false;
  std::vector<CompletedName> choices;  ///< Words to choose from.
  bool takes_file = false;             ///< As a value, beside the words or without any.
};

struct CompletedCommand {
  std::vector<std::string> path;  ///< {"propagation", "network"}; none for the program.
  std::string description;
  std::vector<CompletedOption> options;
  std::vector<CompletedName> commands;  ///< Below it, or the words that its arguments may be.
  bool takes_file = false;              ///< Whether an argument may be a file.
};

/// The program first, each command before those below it.
[[nodiscard]] std::vector<CompletedCommand> completion_table(const CLI::App& program);

/// What a shell reads to complete the commands of `program`; `shell` is bash, zsh or fish.
[[nodiscard]] std::string completion_script(const std::string& shell, const std::string& program,
                                            const std::vector<CompletedCommand>& table);

}  // namespace widelimit::cli
