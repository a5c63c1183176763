#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/heads/heads_experiment.hpp"
#include "cli/heads/heads_pictures.hpp"
#include "cli/heads/heads_scan.hpp"
#include "cli/options/ranges.hpp"
#include "cli/output/output_folder.hpp"
#include "cli/output/output_options.hpp"
#include "cli/output/progress_bar.hpp"
#include "cli/output/result_table.hpp"
#include "cli/output/result_text.hpp"
#include "cli/plots/gnuplot.hpp"
#include "cli/program/commands.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/specialization/configuration.hpp"

namespace widelimit::cli {
namespace {

using nlohmann::json;

struct HeadsArguments {
  std::filesystem::path config;
  std::filesystem::path out;
  std::filesystem::path plot;
  int threads = 0;
};

struct HeadsExperiment {
  const char* name;
  const char* description;
};

constexpr HeadsExperiment heads_experiments[] = {
    {"flow", "Gradient flow of the population loss in order parameters"},
    {"sgd", "Online SGD at finite dimension"},
    {"compare", "Online SGD and the flow from the same start"},
    {"bayes", "Bayes risk of a prior"},
    {"hessian", "Hessian constants at the origin and escape rates"},
    {"prune", "Greedy removal of trained heads"},
    {"attention", "Where trained heads attend: maps of single sequences, and mean weights"},
    {"phase-transition", "Specialisation times over the size of the start"},
    {"feature-times", "Specialisation times of each feature over the size of the start"},
    {"digits", "SGD on digits: loss against the Bayes risk, and keys of the heads against the classes"},
    {"digit-times", "Specialisation times of SGD on digits, for each of them, over the size of the start"},
    {"resampling", "A flow on samples that are kept, compared with one on fresh samples at every step"}};

std::string csv_text(const ResultTable& table) { return origin_comment(table.origin) + csv_rows(table); }

std::string json_text(const ResultTable& table) {
  return json{{"origin", origin_json(table.origin)},
              {"columns", table.columns},
              {"rows", table.rows},
              {"summary", table.summary}}
             .dump(1) +
         "\n";
}

[[noreturn]] void fail_without_picture(const HeadsExperiment& experiment) {
  throw ArgumentError(fmt::format("heads {}: there is nothing to draw; leave out --plot", experiment.name));
}

/// Complains before the work rather than after it.
void check_outputs(const HeadsExperiment& experiment, const HeadsArguments& arguments) {
  // Of bayes there is a picture of scans alone, which shows once the configuration is read.
  if (!arguments.plot.empty() && !has_heads_picture(experiment.name) && !has_scans(experiment.name))
    fail_without_picture(experiment);
  const std::string ending = arguments.out.extension().string();
  if (!arguments.out.empty() && ending != ".csv" && ending != ".json")
    throw ArgumentError(fmt::format("--out: expected FILE.csv or FILE.json, got {}", arguments.out.string()));
  check_output_files({.read = {{"the configuration", arguments.config}},
                      .written = {{"--out", arguments.out}, {"--plot", arguments.plot}}});
}

/// Beside the table: the points of a scan that are done.
std::filesystem::path kept_points(const std::filesystem::path& out) {
  return out.empty() ? out : std::filesystem::path(out.string() + ".points");
}

void run(const HeadsExperiment& experiment, const HeadsArguments& arguments, const RunContext& context) {
  check_outputs(experiment, arguments);
  bool scan = false;
  ResultTable table = naming_errors(arguments.config.string(), [&] {
    const json config = read_json(arguments.config);
    scan = is_scan(experiment.name, config);
    if (!scan && !arguments.plot.empty() && !has_heads_picture(experiment.name))
      fail_without_picture(experiment);
    ProgressBar bar(experiment.name, Counted::steps, arguments.threads);
    const RunControl control{
        .threads = arguments.threads,
        .stop = context.interrupt.token(),
        .progress = [&bar](std::ptrdiff_t done, std::ptrdiff_t all) { bar.show(done, all); }};
    return scan ? run_scan(experiment.name, config, control, kept_points(arguments.out))
                : run_experiment(experiment.name, config, control);
  });
  note_missing(table);
  if (arguments.out.empty()) {
    if (prints_json()) {
      print_document(json_text(table));
    } else {
      print_text(stdout, csv_text(table));
      print_text(stderr, result_text(table.summary));
    }
  } else {
    files::replace_file(arguments.out,
                        arguments.out.extension() == ".json" ? json_text(table) : csv_text(table));
    print_result(table.summary);
  }
  if (!arguments.plot.empty())
    draw_output_file(arguments.plot,
                     scan ? scan_script(experiment.name, table) : heads_script(experiment.name, table),
                     context.interrupt.token());
}

void fill_heads_command(CLI::App& command, const RunContext& context) {
  command.require_subcommand(1);
  for (const HeadsExperiment& experiment : heads_experiments) {
    auto arguments = std::make_shared<HeadsArguments>();
    CLI::App* one = command.add_subcommand(experiment.name, experiment.description);
    add_value(*one, "config", arguments->config, "JSON file of the experiment", "FILE")->required();
    add_value(*one, "--out", arguments->out, "Table: FILE.csv or FILE.json [CSV on standard output]", "FILE");
    add_picture_option(*one, "--plot", arguments->plot, "Picture");
    add_threads_option(*one, arguments->threads);
    add_json_option(*one);
    one->footer(config_fields_help(specialization::experiment_fields(experiment.name)));
    one->callback([&experiment, arguments, &context] { run(experiment, *arguments, context); });
  }
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
