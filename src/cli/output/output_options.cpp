#include "cli/output/output_options.hpp"

#include <CLI/CLI.hpp>

#include "cli/options/ranges.hpp"
#include "cli/plots/gnuplot.hpp"
#include "widelimit/error.hpp"

namespace widelimit::cli {

void add_force_option(CLI::App& command, OtherFiles& others) {
  command.add_flag_callback(
      "--force", [&others] { others = OtherFiles::kept; },
      "Write into a folder with files that are not of an earlier run; they are kept");
}

void add_no_report_option(CLI::App& command, bool& no_report) {
  command.add_flag("--no-report", no_report, "Write no report.html");
}

void add_picture_option(CLI::App& command, const std::string& name, std::filesystem::path& picture,
                        const std::string& description) {
  const auto check_ending = [](const std::string& file) {
    try {
      static_cast<void>(picture_format(file));
      return std::string();
    } catch (const ArgumentError& error) {
      return std::string(error.what());
    }
  };
  add_value(command, name, picture, description + ", .png, .svg or .pdf (takes gnuplot)",
            CLI::Validator(check_ending, ""), "FILE.png");
}

void add_reliability_option(CLI::App& command, std::filesystem::path& picture) {
  add_picture_option(command, "--reliability", picture,
                     "Picture of how often predictions of a confidence are right, for classes: on test data "
                     "(of fit, or else validation data, with the fitted amplitude and with 1)");
}

}  // namespace widelimit::cli
