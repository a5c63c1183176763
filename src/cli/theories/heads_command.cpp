#include <CLI/CLI.hpp>

#include "cli/program/commands.hpp"
#include "cli/theories/theory_command.hpp"
#include "widelimit/specialization/experiments.hpp"

namespace widelimit::cli {
namespace {

void fill_heads_command(CLI::App& command, const RunContext& context) {
  add_experiments(command, specialization::experiments(), context);
  command.footer(
      "Example:\n"
      "  echo '{\"activation\": \"bayes\", \"prior\": {\"kind\": \"flip2\", \"nu1\": 2, \"nu2\": 2}, "
      "\"tokens\": 5, \"heads\": 2, \"tau\": 40}' > flow.json\n"
      "  widelimit heads flow flow.json --out flow.csv --plot flow.png");
}

}  // namespace

const Command heads_command{"heads", "Specialisation of attention heads in the single-location model",
                            fill_heads_command};

}  // namespace widelimit::cli
