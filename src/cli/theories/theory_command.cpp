#include "cli/theories/theory_command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/options/ranges.hpp"
#include "cli/output/output_folder.hpp"
#include "cli/output/output_options.hpp"
#include "cli/output/progress_bar.hpp"
#include "cli/output/result_text.hpp"
#include "cli/plots/gnuplot.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"

namespace widelimit::cli {
namespace {

using nlohmann::json;
using results::Experiment;
using results::Results;
using results::Theory;

struct ExperimentArguments {
  std::filesystem::path config, out, plot;
  int threads = 0;
};

/// One experiment of a theory, asked for on the command line.
class ExperimentRun {
 public:
  ExperimentRun(const Theory& theory, const Experiment& experiment, const ExperimentArguments& arguments,
                const RunContext& context)
      : theory_{theory}, experiment_{experiment}, arguments_{arguments}, context_{context} {}

  void run() {
    check_outputs();
    Results results = naming_errors(arguments_.config.string(), [&] { return computed(); });
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

  [[nodiscard]] Results computed() {
    const json config = read_json(arguments_.config);
    is_scan_ = is_scan(experiment_, config);
    if (!is_scan_) require_picture();
    ProgressBar bar(experiment_.name, Counted::steps, arguments_.threads);
    results::Control control;
    control.threads = arguments_.threads;
    control.stop = context_.interrupt.token();
    control.progress = [&bar](std::ptrdiff_t done, std::ptrdiff_t all) { bar.show(done, all); };
    // Beside the table: the points of a scan that are done.
    const std::string kept = arguments_.out.empty() ? "" : arguments_.out.string() + ".points";
    return is_scan_ ? run_scan(theory_, experiment_.name, config, control, kept)
                    : theory_.run(experiment_.name, config, control);
  }

  void write(const Results& results) const {
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

void add_experiments(CLI::App& command, const Theory& theory, const RunContext& context) {
  command.require_subcommand(1);
  for (const Experiment& experiment : theory.experiments) {
    auto arguments = std::make_shared<ExperimentArguments>();
    CLI::App* one = command.add_subcommand(experiment.name, experiment.sentence);
    add_value(*one, "config", arguments->config, "JSON file of the experiment", "FILE")->required();
    add_value(*one, "--out", arguments->out, "Table: FILE.csv or FILE.json [CSV on standard output]", "FILE");
    add_picture_option(*one, "--plot", arguments->plot, "Picture");
    add_threads_option(*one, arguments->threads);
    add_json_option(*one);
    one->footer(config_fields_help(*experiment.fields));
    one->callback([&theory, &experiment, arguments, &context] {
      ExperimentRun(theory, experiment, *arguments, context).run();
    });
  }
}

}  // namespace widelimit::cli
