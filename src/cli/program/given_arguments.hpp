#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace widelimit::cli {

struct GivenArguments {
  std::vector<std::string> words;   ///< The program first.
  std::function<void()> when_done;  ///< What is said once the command has ended.
};

/// The words of the command line, with those of files in their places:
///     rerun FOLDER      the arguments that run.json of a folder holds (Rerun); the working directory becomes that of
///                       the run
///     --config FILE     the arguments of a JSON file: a list of the words that follow the command, or an object such
///                       as run.json, whose list under "arguments" begins with the command
/// Errors  DataError naming the file for what cannot be read or is no list of words, for another command than the one
///         that runs, and for a working directory that is not there.
[[nodiscard]] GivenArguments given_arguments(int argc, const char* const* argv);

/// The words in such a file. DataError naming it, if there are none.
[[nodiscard]] std::vector<std::string> words_in(const nlohmann::json& file,
                                                const std::filesystem::path& path);

/// The option --config in the help of a command; given_arguments() has read it before.
void add_config_option(CLI::App& command);

}  // namespace widelimit::cli
