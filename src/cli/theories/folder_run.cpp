#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/output/progress_bar.hpp"
#include "cli/output/result_text.hpp"
#include "cli/plots/gnuplot.hpp"
#include "cli/theories/experiment_arguments.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"

namespace widelimit::cli {

using nlohmann::json;
using results::Experiment;

results::Control control_of(const ExperimentArguments& arguments, const RunContext& context) {
  results::Control control;
  control.threads = arguments.threads;
  control.stop = context.interrupt.token();
  control.progress_of = [threads = arguments.threads](const std::string& part) -> results::Control::Progress {
    return [bar = std::make_shared<ProgressBar>(part, Counted::steps, threads)](
               std::ptrdiff_t done, std::ptrdiff_t all) { bar->show(done, all); };
  };
  control.warn = [](const std::string& text) { warn("{}", text); };
  control.notice = [](const std::string& text) { print_notice(text); };
  control.config_name = arguments.config.string();
  control.with_trajectories = arguments.trajectories;
  return control;
}

namespace {

json read_object(const std::filesystem::path& file) {
  json config = read_json(file);
  if (!config.is_object())
    throw DataError(fmt::format("{}: expected a JSON object, got {}", file.string(), config.type_name()));
  return config;
}

std::vector<std::string> files_of(const Experiment& experiment, bool trajectories) {
  std::vector<std::string> files = experiment.files;
  if (trajectories) files.emplace_back("trajectories.csv");
  return files;
}

std::string stem_of(const std::string& file) { return std::filesystem::path(file).stem().string(); }

bool is_report(const std::string& file) { return file.ends_with(".json"); }

/// The report or, where there is none, the table; to people only what they were not told meanwhile.
void print_results(const results::Results& results, const std::vector<std::string>& files, bool told) {
  if (files.size() == 1 && !is_report(files.front()))
    print_csv(csv_text(results.tables.at(stem_of(files.front()))));
  else if (prints_json() || !told)
    print_result(results.summary);
}

}  // namespace

void run_to_folder(const results::Theory& theory, const Experiment& experiment,
                   const ExperimentArguments& arguments, const RunContext& context) {
  const json config = read_object(arguments.config);
  const std::string name = arguments.config.string();
  // What is wrong with the configuration or the folder shows before the work.
  naming_errors(name, [&] {
    check_fields(config, experiment.fields_of != nullptr ? experiment.fields_of(config) : *experiment.fields,
                 "config");
  });
  const std::vector<std::string> files = files_of(experiment, arguments.trajectories);
  std::vector<std::string> all = files;
  all.insert(all.end(), experiment.pictures.begin(), experiment.pictures.end());
  OutputFolder folder(arguments.out, all, arguments.other_files);
  folder.check_inputs({{"the configuration", arguments.config}});
  results::Control control = control_of(arguments, context);
  bool shown = false, told = false;
  control.show = [&](const json& part) {
    shown = true;
    print_result(part);
  };
  control.say = [&](const std::string& text) {
    told = true;
    say("{}", text);
  };
  results::Results results =
      naming_errors(name, [&] { return theory.run(experiment.name, config, control); });
  for (const std::string& warning : note_missing(results)) warn("{}", warning);
  if (!shown) print_results(results, files, told);
  for (const std::string& file : files)
    if (!is_report(file))
      folder.write(file, origin_comment(results.origin) + csv_text(results.tables.at(stem_of(file))));
  results.summary["origin"] = origin_json(results.origin);
  for (const std::string& file : files)
    if (is_report(file)) folder.write(file, results.summary.dump(2) + "\n");
  const RunRecord record{context.command_line, config, results.shapes};
  folder.commit(record);
  if (arguments.no_pictures) return;
  Gnuplot gnuplot(context.interrupt.token());
  for (std::size_t k = 0; k < results.pictures.size(); ++k)
    if (const auto picture = results.pictures[k]())
      folder.draw(experiment.pictures[k], gnuplot_script(*picture), gnuplot);
  folder.commit(record);
}

}  // namespace widelimit::cli
