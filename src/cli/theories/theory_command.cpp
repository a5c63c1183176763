#include "cli/theories/theory_command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/options/ranges.hpp"
#include "cli/output/output_options.hpp"
#include "cli/output/progress_bar.hpp"
#include "cli/output/result_text.hpp"
#include "cli/theories/experiment_arguments.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"

namespace widelimit::cli {
namespace {

using nlohmann::json;
using results::Experiment;
using results::Theory;

/// One experiment that writes a table, asked for on the command line.
class TableRun {
 public:
  TableRun(const Theory& theory, const Experiment& experiment, const ExperimentArguments& arguments,
           const RunContext& context)
      : theory_{theory}, experiment_{experiment}, arguments_{arguments}, context_{context} {}

  void run() {
    check_outputs();
    results::Results results = naming_errors(arguments_.config.string(), [&] { return computed(); });
    for (const std::string& warning : note_missing(results)) warn("{}", warning);
    write(results);
    if (arguments_.plot.empty()) return;
    const results::Picture picture =
        is_scan_ ? results::scan_picture(theory_, experiment_.name, results) : experiment_.picture(results);
    draw_output_file(arguments_.plot, results::gnuplot_script(picture), context_.interrupt.token());
  }

 private:
  /// Complains before the work rather than after it.
  void check_outputs() const {
    // Of some there is a picture of scans alone, which shows once the configuration is read.
    if (!has_scans(experiment_)) require_picture();
    const std::string ending = arguments_.out.extension().string();
    if (!arguments_.out.empty() && ending != ".csv" && ending != ".json")
      throw ArgumentError(
          fmt::format("--out: expected FILE.csv or FILE.json, got {}", arguments_.out.string()));
    check_output_files({.read = {{"the configuration", arguments_.config}},
                        .written = {{"--out", arguments_.out}, {"--plot", arguments_.plot}}});
  }

  void require_picture() const {
    if (!arguments_.plot.empty() && experiment_.picture == nullptr)
      throw ArgumentError(
          fmt::format("{} {}: there is nothing to draw; leave out --plot", theory_.name, experiment_.name));
  }

  [[nodiscard]] results::Results computed() {
    const json config = read_json(arguments_.config);
    is_scan_ = is_scan(experiment_, config);
    if (!is_scan_) require_picture();
    ProgressBar bar(experiment_.name, Counted::steps, arguments_.threads);
    results::Control control = control_of(arguments_, context_);
    control.progress = [&bar](std::ptrdiff_t done, std::ptrdiff_t all) { bar.show(done, all); };
    // Beside the table: the points of a scan that are done.
    const std::string kept = arguments_.out.empty() ? "" : arguments_.out.string() + ".points";
    return is_scan_ ? run_scan(theory_, experiment_.name, config, control, kept)
                    : theory_.run(experiment_.name, config, control);
  }

  void write(const results::Results& results) const {
    const auto text = [&](bool as_json) {
      if (!as_json) return origin_comment(results.origin) + csv_text(results.table);
      json document = json_of(results.table);
      document.update({{"origin", origin_json(results.origin)}, {"summary", results.summary}});
      return document.dump(1) + "\n";
    };
    if (!arguments_.out.empty()) {
      files::replace_file(arguments_.out, text(arguments_.out.extension() == ".json"));
      print_result(results.summary);
    } else if (prints_json()) {
      print_document(text(true));
    } else {
      print_text(stdout, text(false));
      print_text(stderr, result_text(results.summary));
    }
  }

  const Theory& theory_;
  const Experiment& experiment_;
  const ExperimentArguments& arguments_;
  const RunContext& context_;
  bool is_scan_ = false;
};

}  // namespace

namespace {

void add_folder_options(CLI::App& command, const Experiment& experiment, ExperimentArguments& arguments) {
  add_value(command, "config", arguments.config, "JSON configuration", "FILE")->required();
  add_value(command, "--out", arguments.out, "Folder for results (created if needed)", "FOLDER")->required();
  add_threads_option(command, arguments.threads);
  add_json_option(command);
  add_force_option(command, arguments.other_files);
  command.add_flag("--no-pictures", arguments.no_pictures, "Write no pictures (gnuplot is not needed then)");
  if (!experiment.trajectories.empty())
    command.add_flag("--trajectories", arguments.trajectories, experiment.trajectories);
}

void add_table_options(CLI::App& command, ExperimentArguments& arguments) {
  add_value(command, "config", arguments.config, "JSON file of the experiment", "FILE")->required();
  add_value(command, "--out", arguments.out, "Table: FILE.csv or FILE.json [CSV on standard output]", "FILE");
  add_picture_option(command, "--plot", arguments.plot, "Picture");
  add_threads_option(command, arguments.threads);
  add_json_option(command);
}

}  // namespace

void add_experiments(CLI::App& command, const Theory& theory, const RunContext& context) {
  command.require_subcommand(1);
  for (const Experiment& experiment : theory.experiments) {
    auto arguments = std::make_shared<ExperimentArguments>();
    CLI::App* one = command.add_subcommand(experiment.name, experiment.sentence);
    const bool is_folder = !experiment.files.empty();
    if (is_folder)
      add_folder_options(*one, experiment, *arguments);
    else
      add_table_options(*one, *arguments);
    one->footer(config_fields_help(*experiment.fields) + experiment.help);
    one->callback([&theory, &experiment, arguments, is_folder, &context] {
      if (is_folder)
        run_to_folder(theory, experiment, *arguments, context);
      else
        TableRun(theory, experiment, *arguments, context).run();
    });
  }
}

}  // namespace widelimit::cli
