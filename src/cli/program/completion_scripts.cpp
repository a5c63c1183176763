#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>

#include "cli/program/completion_table.hpp"
#include "cli/program/run_context.hpp"
#include "widelimit/error.hpp"

namespace widelimit::cli {
namespace {

using Table = std::vector<CompletedCommand>;

/// "/propagation/network".
std::string place_of(const CompletedCommand& command) {
  std::string place;
  for (const std::string& word : command.path) place += "/" + word;
  return place;
}

/// The names of options or commands, with spaces between them.
template <typename Named>
std::string names_of(const std::vector<Named>& all) {
  std::vector<std::string> names;
  for (const Named& one : all) names.push_back(one.name);
  return fmt::format("{}", fmt::join(names, " "));
}

/// The loop of bash and zsh that finds which command stands before the cursor.
std::string find_place(const Table& table, std::string_view words_before_cursor) {
  std::string places;
  for (const CompletedCommand& command : table)
    if (!command.path.empty()) places += (places.empty() ? "" : "|") + place_of(command);
  return fmt::format(R"(  for word in {}; do
    case "$place/$word" in
      {}) place="$place/$word" ;;
    esac
  done
)",
                     words_before_cursor, places);
}

/// Cases of "PLACE PREVIOUS", where a word of a few is expected: a shell offers them, or them and files.
std::string choice_cases(const Table& table, std::string_view offer, std::string_view offer_with_files) {
  std::string cases;
  for (const CompletedCommand& command : table)
    for (const CompletedOption& option : command.options)
      if (!option.choices.empty())
        fmt::format_to(std::back_inserter(cases), "    \"{} {}\") {}; return ;;\n", place_of(command),
                       option.name,
                       fmt::format(fmt::runtime(option.takes_file ? offer_with_files : offer),
                                   names_of(option.choices)));
  return cases;
}

std::string bash_script(const std::string& program, const Table& table) {
  std::string cases;
  for (const CompletedCommand& command : table)
    fmt::format_to(std::back_inserter(cases), "    \"{}\") options=\"{}\" commands=\"{}\" ;;\n",
                   place_of(command), names_of(command.options), names_of(command.commands));
  return fmt::format(R"(# bash completion of {0}
_{1}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} place= word options commands
{2}  case "$place ${{COMP_WORDS[COMP_CWORD-1]}}" in
{3}  esac
  case "$place" in
{4}  esac
  [[ $current == -* ]] && commands=$options
  COMPREPLY=($(compgen -W "$commands" -- "$current"))
}}
complete -o default -F _{1} {0}
)",
                     program, program == "widelimit-mpi" ? "widelimit_mpi" : program,
                     find_place(table, "\"${COMP_WORDS[@]:1:COMP_CWORD-1}\""),
                     choice_cases(table, R"(COMPREPLY=($(compgen -W "{}" -- "$current")))",
                                  R"(COMPREPLY=($(compgen -f -W "{}" -- "$current")))"),
                     cases);
}

/// NAME:DESCRIPTION of each, quoted, as zsh's _describe takes them.
template <typename Named>
std::string described(const std::vector<Named>& all) {
  std::string words;
  for (const Named& one : all) words += shell_quoted(one.name + ":" + one.description) + " ";
  return words;
}

std::string zsh_script(const std::string& program, const Table& table) {
  std::string cases;
  for (const CompletedCommand& command : table)
    fmt::format_to(std::back_inserter(cases), "    \"{}\") options=({}) commands=({}) ;;\n",
                   place_of(command), described(command.options), described(command.commands));
  return fmt::format(R"(#compdef {0}
_{0}() {{
  local place= word
  local -a options commands
{1}  case "$place ${{words[CURRENT-1]}}" in
{2}  esac
  case "$place" in
{3}  esac
  if [[ $PREFIX == -* ]]; then _describe option options
  elif (( $#commands )); then _describe command commands || _files
  else _files
  fi
}}
if [[ $funcstack[1] == _{0} ]]; then _{0} "$@"; else compdef _{0} {0}; fi
)",
                     program, find_place(table, "${words[2,CURRENT-1]}"),
                     choice_cases(table, "compadd -- {}", "compadd -- {}; _files"), cases);
}

/// A word as fish reads it, which knows escapes of quotes and backslashes within quotes.
std::string fish_quoted(std::string_view word) {
  std::string result = "'";
  for (const char c : word) result += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  return result + "'";
}

/// Of fish: the cursor stands after this command, and behind none of those below it.
std::string fish_condition(const CompletedCommand& command) {
  std::string condition;
  for (const std::string& word : command.path)
    condition += fmt::format("__fish_seen_subcommand_from {}; and ", word);
  if (command.commands.empty()) return condition.substr(0, condition.size() - 6);
  return fmt::format("{}not __fish_seen_subcommand_from {}", condition, names_of(command.commands));
}

/// Words, each with a tab and its description, if it has one, as fish takes them.
std::string fish_words(const std::vector<CompletedName>& choices) {
  std::string words;
  for (const CompletedName& choice : choices)
    words += (words.empty() ? "" : "\n") + choice.name +
             (choice.description.empty() ? "" : "\t" + choice.description);
  return fish_quoted(words);
}

std::string fish_script(const std::string& program, const Table& table) {
  std::string text = fmt::format("# fish completion of {}\n", program);
  const auto add = [&](const CompletedCommand& where, const std::string& what,
                       const std::string& description) {
    fmt::format_to(std::back_inserter(text), "complete -c {} -n {} {} -d {}\n", program,
                   fish_quoted(fish_condition(where)), what, fish_quoted(description));
  };
  for (const CompletedCommand& command : table) {
    for (const CompletedName& below : command.commands)
      add(command, (command.takes_file ? "-a " : "-f -a ") + below.name, below.description);
    for (const CompletedOption& option : command.options)
      add(command,
          fmt::format("-l {}{}{}", option.name.substr(2),
                      !option.takes_value ? ""
                      : option.takes_file ? " -r"
                                          : " -x",
                      option.choices.empty() ? "" : fmt::format(" -a {}", fish_words(option.choices))),
          option.description);
  }
  return text;
}

}  // namespace

std::string completion_script(const std::string& shell, const std::string& program,
                              const std::vector<CompletedCommand>& table) {
  if (shell == "bash") return bash_script(program, table);
  if (shell == "zsh") return zsh_script(program, table);
  if (shell == "fish") return fish_script(program, table);
  throw ArgumentError(fmt::format("completion: expected bash, zsh or fish, got '{}'", shell));
}

}  // namespace widelimit::cli
