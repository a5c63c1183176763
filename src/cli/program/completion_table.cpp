#include "cli/program/completion_table.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "widelimit/models/named_networks.hpp"

namespace widelimit::cli {
namespace {

/// The words of "a|b|c", and names of networks where one is expected.
std::vector<std::string> choices_of(const std::string& type) {
  std::vector<std::string> choices;
  if (type == "NETWORK")
    for (const models::NamedNetwork& network : models::named_networks()) choices.emplace_back(network.name);
  if (type.find('|') != std::string::npos) choices = CLI::detail::split(type, '|');
  return choices;
}

/// Up to the first semicolon or full stop: a shell shows one line.
std::string first_clause(const std::string& description) {
  const auto end = std::min({description.find("; "), description.find(". "), description.find(" ("),
                             description.find(" ["), description.size()});
  return description.substr(0, end);
}

CompletedOption completed(const CLI::Option& option) {
  CompletedOption result{"--" + option.get_lnames().front(),
                         first_clause(option.get_description()),
                         option.get_expected_min() > 0,
                         {},
                         false};
  if (!result.takes_value) return result;
  const std::string type = option.get_type_name();
  result.choices = choices_of(type);
  result.takes_file = result.choices.empty() || type == "NETWORK";
  return result;
}

void collect(const CLI::App& app, std::vector<std::string> path, std::vector<CompletedCommand>& table) {
  CompletedCommand command{path, app.get_description(), {}, {}};
  for (const CLI::Option* option : app.get_options())
    if (!option->get_lnames().empty()) command.options.push_back(completed(*option));
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
