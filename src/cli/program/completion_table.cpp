#include "cli/program/completion_table.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <utility>

#include "cli/output/text_parts.hpp"
#include "widelimit/models/named_networks.hpp"

namespace widelimit::cli {
namespace {

/// Up to the first semicolon or full stop: a shell shows one line.
std::string first_clause(const std::string& description) {
  const auto end = std::min({description.find("; "), description.find(". "), description.find(" ("),
                             description.find(" ["), description.size()});
  return description.substr(0, end);
}

/// The words of "a|b|c", and names of networks where one is expected.
std::vector<CompletedName> choices_of(const CLI::Option& option) {
  std::vector<CompletedName> choices;
  const std::string type = option.get_type_name();
  if (type == "NETWORK")
    for (const models::NamedNetwork& network : models::named_networks())
      choices.push_back({network.name, first_clause(network.description)});
  if (type.find('|') == std::string::npos) return choices;
  const auto described = described_choices(option.get_description());
  for (const std::string& word : split(type, '|')) {
    // NAME stands for any name.
    if (std::ranges::none_of(word, [](unsigned char letter) { return std::islower(letter) != 0; })) continue;
    const auto found = std::ranges::find(described, word, &DescribedChoice::word);
    choices.push_back({word, found == described.end() ? "" : first_clause(found->meaning)});
  }
  return choices;
}

CompletedOption completed(const CLI::Option& option) {
  CompletedOption result{option.get_lnames().empty() ? option.get_name() : "--" + option.get_lnames().front(),
                         first_clause(option.get_description()),
                         option.get_expected_min() > 0,
                         {},
                         false};
  if (!result.takes_value) return result;
  result.choices = choices_of(option);
  result.takes_file = result.choices.empty() || option.get_type_name() == "NETWORK";
  return result;
}

/// Of an argument without a name.
void add_words(const CLI::Option& argument, CompletedCommand& command) {
  const CompletedOption words = completed(argument);
  command.commands.insert(command.commands.end(), words.choices.begin(), words.choices.end());
  command.takes_file = command.takes_file || words.takes_file;
}

void collect(const CLI::App& app, std::vector<std::string> path, std::vector<CompletedCommand>& table) {
  CompletedCommand command{path, app.get_description(), {}, {}, false};
  for (const CLI::Option* option : app.get_options())
    if (!option->get_lnames().empty())
      command.options.push_back(completed(*option));
    else
      add_words(*option, command);
  const auto below = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* child : below)
    command.commands.push_back({child->get_name(), child->get_description()});
  table.push_back(std::move(command));
  for (const CLI::App* child : below) {
    path.push_back(child->get_name());
    collect(*child, path, table);
    path.pop_back();
  }
}

}  // namespace

std::vector<CompletedCommand> completion_table(const CLI::App& program) {
  std::vector<CompletedCommand> table;
  collect(program, {}, table);
  return table;
}

}  // namespace widelimit::cli
