#include "cli/program/given_arguments.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/program/rerun.hpp"
#include "widelimit/error.hpp"
#include "widelimit/files/regular_file.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/json/shown_text.hpp"
#include "widelimit/text/visible_text.hpp"

namespace widelimit::cli {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr std::string_view config_option = "--config";

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
  // What it names is opened from now on.
  files::refuse_pipes();
  std::vector<std::string> inserted = words_in(file, path);
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

/// Arguments stand in run.json, in the origin of other files and in reports, all of which are UTF-8.
void require_utf8(const std::vector<std::string>& given) {
  for (std::size_t i = 1; i < given.size(); ++i)
    if (first_invalid_utf8(given[i]))
      throw ArgumentError(
          fmt::format("argument {}, '{}': expected UTF-8, which files of results keep arguments in; give the "
                      "file another name, or a link to it",
                      i, visible_text(given[i])));
}

}  // namespace

std::vector<std::string> words_in(const json& file, const fs::path& path) {
  const json& list = file.is_object() && file.contains("arguments") ? file.at("arguments") : file;
  std::vector<std::string> words;
  if (list.is_array())
    for (const json& word : list)
      if (word.is_string()) words.push_back(word.get<std::string>());
  if (words.empty() || words.size() != list.size())
    throw DataError(fmt::format(
        "{}: expected a list of arguments, each a text, or an object that holds it under \"arguments\"",
        path.string()));
  // The system would take a name for ended there.
  for (const std::string& word : words)
    if (word.find('\0') != std::string::npos)
      throw DataError(fmt::format("{}: expected arguments without characters of code 0, got {}",
                                  path.string(), shown_json(word)));
  return words;
}

GivenArguments given_arguments(int argc, const char* const* argv) {
  const std::vector<std::string> given(argv, argv + argc);
  require_utf8(given);
  auto rerun = Rerun::in(given);
  if (!rerun) return {with_config(given), [] {}};
  std::vector<std::string> words = rerun->begin();
  return {std::move(words), [rerun = *std::move(rerun)] { rerun.compare(); }};
}

void add_config_option(CLI::App& command) {
  command
      .add_option(std::string(config_option),
                  "Arguments from a JSON file: a list of words, or an object that holds it under "
                  "\"arguments\", as run.json does. They take the place of this option")
      ->type_name("FILE");
}

}  // namespace widelimit::cli
