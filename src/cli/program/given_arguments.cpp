#include "cli/program/given_arguments.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>

#include "cli/output/output_folder.hpp"
#include "cli/output/result_text.hpp"
#include "cli/program/run_context.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/json/shown_text.hpp"
#include "widelimit/text/visible_text.hpp"

namespace widelimit::cli {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr std::string_view config_option = "--config";

std::vector<std::string> words_of(const json& file, const fs::path& path) {
  const json& list = file.is_object() && file.contains("arguments") ? file.at("arguments") : file;
  std::vector<std::string> words;
  if (list.is_array())
    for (const json& word : list)
      if (word.is_string()) words.push_back(word.get<std::string>());
  if (words.empty() || words.size() != list.size())
    throw DataError(fmt::format(
        "{}: expected a list of arguments, each a text, or an object that holds it under \"arguments\"",
        path.string()));
  return words;
}

/// The option of a word such as --name or --name=value; empty for other words.
std::string option_of(const std::string& word) {
  return word.starts_with("--") ? word.substr(0, word.find('=')) : std::string();
}

/// DataError if an option of the file is given on the command line as well: one of both would not count.
void require_apart(const std::vector<std::string>& given, const std::vector<std::string>& inserted,
                   const fs::path& path) {
  for (const std::string& word : inserted) {
    const std::string option = option_of(word);
    if (option.empty()) continue;
    for (const std::string& other : given)
      if (option_of(other) == option)
        throw DataError(fmt::format("{}: {} is in the file and on the command line; give it in one place",
                                    path.string(), option));
  }
}

/// The words of a file in place of --config FILE; the second word given is the command that runs.
void insert_words(std::vector<std::string>& words, const std::vector<std::string>& given,
                  const fs::path& path) {
  const std::string& command = given[1];
  const json file = read_json(path);
  std::vector<std::string> inserted = words_of(file, path);
  if (file.is_object()) {
    if (inserted.front() != command)
      throw DataError(fmt::format("{}: holds the arguments of \"{}\", expected those of \"{}\"",
                                  path.string(), inserted.front(), command));
    inserted.erase(inserted.begin());
  }
  require_apart(given, inserted, path);
  words.insert(words.end(), inserted.begin(), inserted.end());
}

std::vector<std::string> with_config(const std::vector<std::string>& given) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string& word = given[i];
    const std::string with_value = fmt::format("{}=", config_option);
    if (i >= 2 && word.starts_with(with_value))
      insert_words(words, given, word.substr(with_value.size()));
    else if (i >= 2 && word == config_option && i + 1 < given.size())
      insert_words(words, given, given[++i]);
    else
      words.push_back(word);
  }
  return words;
}

/// The run that a folder is of, begun anew where it was begun.
std::vector<std::string> rerun_of(const std::string& program, const fs::path& folder) {
  const fs::path path = folder / record_name;
  const json record = read_json(path);
  std::vector<std::string> words = words_of(record, path);
  if (record.contains("directory")) {
    const json& place = record.at("directory");
    if (!place.is_string())
      throw DataError(
          fmt::format("{}: directory: expected a text, got {}", path.string(), shown_json(place)));
    const auto directory = place.get<std::string>();
    std::error_code error;
    fs::current_path(directory, error);
    if (error)
      throw DataError(fmt::format("{}: the run was begun in {}, which cannot be entered: {}", path.string(),
                                  directory, error.message()));
  }
  words.insert(words.begin(), program);
  print_notice(fmt::format("in {}: {}", fs::current_path().string(), shell_command_line(words)));
  return words;
}

bool contains(const std::vector<std::string>& words, const char* word) {
  return std::ranges::find(words, word) != words.end();
}

/// Arguments stand in run.json, in the origin of other files and in reports, all of which are UTF-8.
void require_utf8(const std::vector<std::string>& given) {
  for (std::size_t i = 1; i < given.size(); ++i)
    if (first_invalid_utf8(given[i]))
      throw ArgumentError(
          fmt::format("argument {}, '{}': expected UTF-8, which files of results keep arguments in; give the "
                      "file another name, or a link to it",
                      i, visible_text(given[i])));
}

/// What goes on to the command that runs again.
constexpr const char* rerun_flags[] = {"--json", "--quiet"};

/// The folder of "rerun FOLDER" with or without flags; nothing of everything else.
std::optional<std::string> folder_to_rerun(const std::vector<std::string>& given) {
  if (given.size() < 3 || given[1] != "rerun") return std::nullopt;
  std::optional<std::string> folder;
  for (std::size_t i = 2; i < given.size(); ++i) {
    if (std::ranges::find(rerun_flags, given[i]) != std::end(rerun_flags)) continue;
    if (folder || given[i].starts_with('-')) return std::nullopt;
    folder = given[i];
  }
  return folder;
}

}  // namespace

std::vector<std::string> given_arguments(int argc, const char* const* argv) {
  const std::vector<std::string> given(argv, argv + argc);
  require_utf8(given);
  if (const auto folder = folder_to_rerun(given)) {
    std::vector<std::string> words = rerun_of(given[0], *folder);
    for (const char* flag : rerun_flags)
      if (contains(given, flag) && !contains(words, flag)) words.emplace_back(flag);
    return words;
  }
  return with_config(given);
}

void add_config_option(CLI::App& command) {
  command
      .add_option(std::string(config_option),
                  "Arguments from a JSON file: a list of words, or an object that holds it under "
                  "\"arguments\", as run.json does. They take the place of this option")
      ->type_name("FILE");
}

void add_rerun_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "rerun",
      "Runs again what wrote a folder, by the arguments in its run.json and from the same working directory");
  command->add_option("folder", "Folder of an earlier run")->required()->type_name("FOLDER");
  add_json_option(*command);
  // A folder alone has become the command that it names before.
  command->callback([] { throw ArgumentError("rerun: expected one folder and nothing else"); });
}

}  // namespace widelimit::cli
