// Every command line of the pages and of the program's own help names commands, options and choices that
// exist.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>

#include "cli/program.hpp"

using widelimit::testing::file_text;
using widelimit::testing::lines_of;
using widelimit::testing::run_program;

namespace {

using Words = std::vector<std::string>;

/// A command line and where it stands.
struct CommandLine {
  std::string place;
  std::string text;
};

Words words_of(const std::string& text) {
  std::istringstream stream(text);
  Words words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

Words split(const std::string& text, char separator) {
  std::istringstream stream(text);
  Words parts;
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

/// What the help of a command says about it.
struct Help {
  std::string text;
  Words subcommands;
  /// Options and what stands after them: nothing for a flag, else TYPE or the choices "a|b".
  std::map<std::string, std::string> options;
};

Help read_help(const std::string& command) {
  Help help;
  const auto result = run_program(command + " --help");
  REQUIRE(result.code == 0);
  help.text = result.output;
  bool subcommands = false;
  for (const std::string& line : lines_of(result.output)) {
    if (!line.starts_with("  ")) subcommands = line.starts_with("Subcommands:");
    const Words words = words_of(line.substr(0, line.find("   ", 2)));
    if (!line.starts_with("  ") || line.starts_with("   ") || words.empty()) continue;
    if (subcommands) help.subcommands.push_back(words[0]);
    for (const std::string& name : split(words[0], ','))
      if (name.starts_with("-")) help.options[name] = words.size() > 1 ? words[1] : "";
  }
  return help;
}

const Help& help_of(const std::string& command) {
  static std::map<std::string, Help> known;
  const auto found = known.find(command);
  return found != known.end() ? found->second : known.emplace(command, read_help(command)).first->second;
}

bool has(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_placeholder(const std::string& word) {
  return std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::islower(c) == 0; });
}

/// What is wrong with the options of a command line; empty if nothing is.
std::string wrong_option(const Help& help, const Words& words, std::size_t first) {
  for (std::size_t i = first; i < words.size(); ++i) {
    if (!words[i].starts_with("-")) continue;
    const auto option = help.options.find(words[i]);
    if (option == help.options.end()) return "no option " + words[i];
    if (option->second.empty() || option->second == "REQUIRED") continue;
    if (++i == words.size() || words[i].starts_with("--")) return option->first + " without a value";
    const Words choices = split(option->second, '|');
    // A choice in capitals, such as NAME of a device, stands for values of the user's.
    const bool is_open = std::any_of(choices.begin(), choices.end(), is_placeholder);
    if (choices.size() < 2 || is_open || is_placeholder(words[i])) continue;
    for (const std::string& value : split(words[i], '|'))
      if (!has(choices, value)) return option->first + " has no choice " + value;
  }
  return "";
}

/// The same for a whole line. "a|b" in place of a command stands for both.
std::string wrong_part(const Words& words, std::size_t first = 1, const std::string& command = "") {
  const Help& help = help_of(command);
  if (first == words.size() || help.subcommands.empty() || words[first].starts_with("-"))
    return wrong_option(help, words, first);
  // "widelimit sde COMMAND --help": any of the commands.
  if (words[first] == "COMMAND") return "";
  for (const std::string& name : split(words[first], '|')) {
    if (!has(help.subcommands, name)) return "no command " + name;
    const std::string wrong = wrong_part(words, first + 1, command + " " + name);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

/// "widelimit COMMAND ..." at the start of a text, up to its end or a closing backquote.
std::optional<std::string> command_in(const std::string& text) {
  if (!text.starts_with("widelimit ") || text.size() < 11 || std::islower(text[10]) == 0) return {};
  return text.substr(0, text.find('`'));
}

/// The command lines of a text: lines of their own, continued after a backslash, and spans in backquotes.
std::vector<CommandLine> commands_in(const std::string& name, const std::string& text) {
  std::vector<CommandLine> found;
  const std::vector<std::string> lines = lines_of(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string place = name + ":" + std::to_string(i + 1);
    std::string line = lines[i];
    while (line.ends_with("\\") && i + 1 < lines.size()) line = line.substr(0, line.size() - 1) + lines[++i];
    for (auto at = line.find("\\|"); at != std::string::npos; at = line.find("\\|")) line.erase(at, 1);
    for (std::size_t at = line.find("widelimit "); at != std::string::npos;
         at = line.find("widelimit ", at + 1)) {
      const bool own_line = line.find_first_not_of(' ') == at || line.substr(0, at).ends_with("Example: ");
      if (!own_line && (at == 0 || line[at - 1] != '`')) continue;
      if (const auto command = command_in(line.substr(at))) found.push_back({place, *command});
    }
  }
  return found;
}

void check_commands(const std::vector<CommandLine>& lines) {
  for (const auto& [place, text] : lines) {
    CAPTURE(place);
    CAPTURE(text);
    CHECK(wrong_part(words_of(text)) == "");
  }
}

}  // namespace

TEST_CASE("documentation: what the check of command lines rejects") {
  CHECK(wrong_part({"widelimit", "gp", "--network", "fcn", "--data", "sample|NAME"}) ==
        "--data has no choice NAME");
  CHECK(wrong_part({"widelimit", "gpp", "--network", "fcn"}) == "no command gpp");
  CHECK(wrong_part({"widelimit", "gp", "--networks", "fcn"}) == "no option --networks");
  CHECK(wrong_part({"widelimit", "gp", "--network"}) == "--network without a value");
  CHECK(wrong_part({"widelimit", "sde", "simulate|paths", "CONFIG.json"}) == "no command paths");
  CHECK(wrong_part({"widelimit", "sde", "simulate|network", "CONFIG.json", "--out", "FOLDER"}) == "");
  CHECK(commands_in("page", "see `widelimit gp --no` and\n    widelimit gp \\\n      --more\n").size() == 2);
}

TEST_CASE("documentation: command lines of the pages") {
  const std::filesystem::path root = WIDELIMIT_SOURCE_DIR;
  std::vector<CommandLine> lines = commands_in("README.md", file_text(root / "README.md"));
  CHECK(lines.size() > 3);
  const auto data_page = commands_in("data/README.md", file_text(root / "data/README.md"));
  lines.insert(lines.end(), data_page.begin(), data_page.end());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "docs")) {
    if (entry.path().extension() != ".md") continue;
    const auto more = commands_in(entry.path().filename().string(), file_text(entry.path()));
    lines.insert(lines.end(), more.begin(), more.end());
  }
  CHECK(lines.size() > 20);
  check_commands(lines);
}

TEST_CASE("documentation: command lines of the program's help") {
  std::vector<CommandLine> lines;
  std::vector<std::string> commands{""};
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const std::string command = commands[i];
    const auto more = commands_in("widelimit" + command + " --help", help_of(command).text);
    lines.insert(lines.end(), more.begin(), more.end());
    for (const std::string& name : help_of(command).subcommands) commands.push_back(command + " " + name);
  }
  CHECK(commands.size() > 15);
  CHECK(lines.size() > 10);
  check_commands(lines);
}
