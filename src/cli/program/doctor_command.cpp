#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/output/result_text.hpp"
#include "cli/program/commands.hpp"
#include "cli/program/machine_facts.hpp"
#include "cli/program/self_checks.hpp"
#include "widelimit/error.hpp"
#include "widelimit/text/visible_text.hpp"

namespace widelimit::cli {
namespace {

std::string as_text(const std::vector<FactGroup>& groups) {
  std::string text;
  for (const FactGroup& group : groups) {
    fmt::format_to(std::back_inserter(text), "{}\n", group.name);
    if (group.facts.empty()) text += "  nothing that matters is set\n";
    for (const Fact& fact : group.facts)
      fmt::format_to(std::back_inserter(text), "  {:<22} {}\n", fact.name, visible_text(fact.value));
  }
  return text;
}

std::string as_json(const std::vector<FactGroup>& groups) {
  nlohmann::ordered_json document = nlohmann::ordered_json::object();
  for (const FactGroup& group : groups) {
    auto& facts = document[group.name] = nlohmann::ordered_json::object();
    for (const Fact& fact : group.facts) facts[fact.name] = visible_text(fact.value);
  }
  return document.dump(2) + "\n";
}

void run(bool json, const std::string& mpi) {
  std::vector<FactGroup> groups = machine_facts(mpi);
  const std::vector<SelfCheck> checks = self_checks();
  FactGroup results{"checks", {}};
  std::string failed;
  for (const SelfCheck& check : checks) {
    results.facts.push_back({check.name, check.text()});
    if (!check.holds()) failed += (failed.empty() ? "" : ", ") + check.name;
  }
  groups.push_back(std::move(results));
  if (json)
    print_document(as_json(groups));
  else
    print_text(stdout, as_text(groups));
  if (!failed.empty())
    throw Error(fmt::format(
        "doctor: this build computes wrong numbers here: {}; please report all of the above", failed));
}

void fill_doctor_command(CLI::App& command, const RunContext& context) {
  auto json = std::make_shared<bool>(false);
  command.add_flag("--json", *json, "Write it as JSON");
  command.footer("Exit code 1 where a check fails.");
  command.callback([json, &context] { run(*json, context.mpi); });
}

}  // namespace

const Command doctor_command{
    "doctor", "Prints what a report of an error needs to say, and checks that this build computes right here",
    fill_doctor_command};

}  // namespace widelimit::cli
