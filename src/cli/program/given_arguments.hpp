#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace widelimit::cli {

/// The words of the command line, the program first, with those of files in their places:
///     rerun FOLDER      the arguments that run.json of a folder holds; the working directory becomes that of the run
///     --config FILE     the arguments of a JSON file: a list of the words that follow the command, or an object such
///     as
///                       run.json, whose list under "arguments" begins with the command
/// Errors  DataError naming the file for what cannot be read or is no list of words, for another command than the one
///         that runs, and for a working directory that is not there.
[[nodiscard]] std::vector<std::string> given_arguments(int argc, const char* const* argv);

/// The option --config in the help of a command; given_arguments() has read it before.
void add_config_option(CLI::App& command);

/// The command rerun in the help of the program.
void add_rerun_command(CLI::App& program);

}  // namespace widelimit::cli
