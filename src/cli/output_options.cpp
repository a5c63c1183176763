#include "cli/output_options.hpp"

#include <CLI/CLI.hpp>

namespace widelimit::cli {

void add_force_option(CLI::App& command, OtherFiles& others) {
  command.add_flag_callback(
      "--force", [&others] { others = OtherFiles::kept; },
      "Write into a folder with files that are not of an earlier run; they stay");
}

}  // namespace widelimit::cli
