#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <optional>

#include "cli/gp/gp_arguments.hpp"
#include "cli/gp/grid_edge.hpp"
#include "cli/grams/store_options.hpp"
#include "cli/models/fit_search.hpp"
#include "cli/models/learning.hpp"
#include "cli/models/model_predictions.hpp"
#include "cli/models/model_scores.hpp"
#include "cli/options/inference_options.hpp"
#include "cli/options/kernel_options.hpp"
#include "cli/options/network_argument.hpp"
#include "cli/options/ranges.hpp"
#include "cli/output/output_folder.hpp"
#include "cli/output/output_options.hpp"
#include "cli/output/progress_bar.hpp"
#include "cli/output/result_text.hpp"
#include "cli/program/commands.hpp"
#include "cli/program/given_arguments.hpp"
#include "cli/quality/task_baselines.hpp"
#include "cli/tasks/data_arguments.hpp"
#include "widelimit/error.hpp"
#include "widelimit/files/folder_lock.hpp"
#include "widelimit/gp/model.hpp"
#include "widelimit/gp/resources.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/kernel/explain.hpp"
#include "widelimit/network/network_file.hpp"
#include "widelimit/numerics/memory.hpp"
#include "widelimit/text/visible_text.hpp"

namespace widelimit::cli {
namespace {

struct FitArguments {
  std::string network = automatic_argument;
  std::optional<Index> depth;
  DataArguments data;
  KernelOptions kernel{.kernels = Kernels::nngp};
  FitChoice fit;
  SearchChoice search;
  StoreArguments store;
  std::filesystem::path reliability;
  OutputArguments output;
  std::filesystem::path model;

  [[nodiscard]] gp::Criterion criterion() const { return fit.request.chosen_by(); }
  /// Whether anything but the scores of the last table reads validation data.
  [[nodiscard]] bool reads_validation() const { return fit.options.refit || fit.chooses_by_validation(); }
};

void check_fit_arguments(const CLI::App& command, FitArguments& arguments) {
  check_data_usage(command, arguments.data);
  check_row_usage(command, arguments.data);
  check_search_usage(command, arguments.search);
  require_named_network(arguments.search, arguments.network);
  if (arguments.kernel.kernels == Kernels::both)
    throw CLI::ValidationError("--kernel", "a model has one: nngp or ntk");
  check_fit_usage(command, arguments.kernel.kernels, true, arguments.fit);
  arguments.store.folder = arguments.fit.options.store_folder.value_or("");
  if (arguments.store.part.parts > 1)
    throw CLI::ValidationError(
        "--part", "a model takes all of a store: gp --part fills the same stores, then fit without it");
}

/// What means nothing for these data is refused before anything is computed.
template <typename Scalar>
void require_meaning(const GpTask<Scalar>& task, const FitArguments& arguments) {
  gp::FitRequest request = arguments.fit.request;
  request.kind = task.kind;
  request.has_validation = task.validation.has_value();
  request.inputs = static_cast<Index>(task.train.size());
  request.outputs = task.train.targets->cols();
  gp::require_fit(request, gp::Door::program);
  require_reliability(
      arguments.reliability, task.kind,
      (task.test.size() > 0 && task.test.targets) || (task.validation && !arguments.fit.options.refit));
  if (!arguments.output.folder.empty() && task.test.size() == 0)
    throw DataError("--out is for predictions of the test data, and there are none");
}

/// What is done with every row of the data.
template <typename Scalar>
std::string rows_text(const GpTask<Scalar>& task, const FitArguments& arguments) {
  std::string text = fmt::format("fitted to {} training inputs", task.train.size());
  if (task.validation && arguments.fit.options.refit)
    text += fmt::format(", then with {} validation inputs as well", task.validation->size());
  else if (task.validation)
    text += arguments.reads_validation()
                ? fmt::format("; {} validation inputs are chosen on and scored", task.validation->size())
                : fmt::format("; {} validation inputs are scored only", task.validation->size());
  if (task.test.size() > 0) text += fmt::format("; {} test inputs are scored only", task.test.size());
  return text;
}

template <typename Scalar>
gp::ModelOptions options_of(const FitArguments& arguments, const GpTask<Scalar>& task,
                            const gp::FeatureMap& varying) {
  gp::ModelOptions options = arguments.fit.options;
  options.input_map = varying;
  // Numbers of a table that come from one column share a scale.
  options.learning.groups = task.channel_groups;
  options.noise_variances = task.noise_variances;
  options.weights = task.weights;
  options.groups = task.groups;
  options.class_names = task.class_names;
  options.preprocessing = task.preprocessing;
  options.preparation = task.preparation.dump();
  options.gram.threads = arguments.kernel.threads;
  options.gram.device = arguments.kernel.device;
  options.gram.exact_attention = arguments.kernel.exact_attention;
  return options;
}

/// The network that is named, or chosen where none is or it is "auto".
template <typename Scalar>
std::optional<gp::AutomaticNetwork> automatic_network_of(const FitArguments& arguments, GpTask<Scalar>& task,
                                                         const gp::FeatureMap& varying,
                                                         const Interrupt& interrupt) {
  if (arguments.network != automatic_argument) return std::nullopt;
  const gp::AutomaticOptions options = gp::automatic_options(options_of(arguments, task, varying));
  return automatic_network(task, varying, options, arguments.depth, arguments.kernel.threads, interrupt);
}

template <typename Scalar>
gp::Model fitted_model(const Network& given, const GpTask<Scalar>& task, const FitArguments& arguments,
                       const gp::FeatureMap& varying, const std::optional<gp::AutomaticNetwork>& automatic,
                       const RunContext& context) {
  const Interrupt& interrupt = context.interrupt;
  gp::ModelOptions options = options_of(arguments, task, varying);
  if (automatic) {
    options.input_map = varying.then(automatic->map);
    options.transform = automatic->transform;
    options.fits_tails = true;
  }
  options.gram.stop = interrupt.token();
  options.store = store_options_of(arguments.store, context);
  const gp::LabelledInputs<Scalar> train{task.train.inputs(), *task.train.targets};
  std::optional<gp::LabelledInputs<Scalar>> validation;
  if (task.validation)
    validation = gp::LabelledInputs<Scalar>{task.validation->inputs(), *task.validation->targets};
  const Network network = searched_network(given, arguments.search, task, options, interrupt);
  // It has compared the networks; beside a regulariser that is given it chooses nothing more.
  if (options.noise) options.criterion.reset();
  std::optional<ProgressBar> bar;
  options.gram.progress = [&](const GramProgress& progress) {
    if (!bar) bar.emplace(network.name(), Counted::pairs, arguments.kernel.threads);
    bar->show(progress.done, progress.total);
  };
  options.iterations = [&bar, show = iteration_line(options.residual)](const std::string& kernel, int passes,
                                                                       double residual) {
    bar.reset();
    show(kernel, passes, residual);
  };
  return validation ? gp::Model::fit(network, train, *validation, options)
                    : gp::Model::fit(network, train.x, train.y, options);
}

/// Of the validation data, unless the model was fitted to them, and of the test data: those with known targets, and
/// test data that are written.
template <typename Scalar>
std::vector<Predicted> predictions_of(const gp::Model& model, const GpTask<Scalar>& task,
                                      const FitArguments& arguments, const Interrupt& interrupt) {
  GramOptions run = gram_options(arguments.kernel);
  run.stop = interrupt.token();
  std::vector<Predicted> predicted;
  const auto add = [&](const char* name, const GpSet<Scalar>& set) {
    const auto start = std::chrono::steady_clock::now();
    predicted.push_back({name, set.targets,
                         model.predict(set.inputs(), prediction_times(model, model.times()), run),
                         std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()});
  };
  if (task.validation && !arguments.fit.options.refit) add("validation", *task.validation);
  if (task.test.size() > 0 && (task.test.targets || !arguments.output.folder.empty())) add("test", task.test);
  return predicted;
}

/// Of the last set: test data where there are some.
void draw_curves(const gp::Model& model, const std::vector<Predicted>& predicted,
                 const FitArguments& arguments, const Interrupt& interrupt) {
  if (arguments.reliability.empty()) return;
  const Predicted& set = predicted.back().targets ? predicted.back() : predicted.front();
  const gp::ModelPrediction& own = set.found.front();
  draw_reliability(
      arguments.reliability,
      {reliability_curve("amplitude 1", with_amplitude_one(model, own).class_probabilities, *set.targets),
       reliability_curve("amplitude fitted", own.class_probabilities, *set.targets)},
      fmt::format("{}: {} inputs", set.name, set.targets->rows()), interrupt.token());
}

/// The folder of --out, for test data, or null: what is wrong with it shows before the work.
std::unique_ptr<OutputFolder> opened_folder(const FitArguments& arguments) {
  if (arguments.output.folder.empty()) return nullptr;
  auto folder = std::make_unique<OutputFolder>(arguments.output.folder,
                                               prediction_file_names(arguments.fit.times().size() + 1),
                                               arguments.output.other_files);
  folder->check_inputs({{"--network", arguments.network},
                        {"--path", arguments.data.path},
                        {"--vectors", arguments.data.vectors}});
  return folder;
}

/// What predict would write for the test data.
template <typename Scalar>
void write_predictions(OutputFolder& folder, const gp::Model& model, const GpTask<Scalar>& task,
                       const Predicted& test, const TestQuality& baselines, bool reports,
                       const RunContext& context) {
  const GpResult result = kernel_predictions(model, test.found, prediction_times(model, model.times()),
                                             test.targets, test.seconds);
  std::optional<TestQuality> quality;
  if (test.targets) quality = quality_of(result, *test.targets);
  if (quality) quality->baselines = baselines.baselines, quality->note = baselines.note;
  PredictionFacts info = facts_of(model, task.description, task.test.names);
  info.learned = model.learned() ? &*model.learned() : nullptr;
  info.channels = &task.channel_names;
  info.targets = &task.target_names;
  info.quality = quality ? &*quality : nullptr;
  info.missing = task.missing;
  info.unknown = task.unknown;
  info.columns = task.columns;
  const RunRecord record{context.command_line, nlohmann::ordered_json::parse(to_json(model.network())),
                         shapes_of(task)};
  write_model_predictions(folder, result, info, {record.command, info.data, task.notes, record.shapes, ""},
                          ReportTest{test.targets, task.test_faces}, reports);
  folder.commit(record);
}

std::string choice_text(const gp::Model& model, const FitArguments& arguments, bool rows_repeat) {
  const std::string kernel = arguments.kernel.kernels == Kernels::nngp ? "nngp" : "ntk";
  const auto& selections = model.selections();
  std::string text;
  for (std::size_t c = 0; c < selections.size(); ++c) {
    const gp::Selection& selection = selections[c];
    const std::string of = selections.size() == 1 ? "" : fmt::format("output {}: ", c);
    text += fmt::format("{}regulariser {:.6g}, chosen by {} among {}{}\n", of, selection.best.value(),
                        criterion_name(arguments.criterion()), selection.scores.size(),
                        arguments.fit.options.refit ? "; fitted again with the validation data" : "");
    text += edge_text(of + kernel, selection.best.value(), selection.scores,
                      {arguments.criterion(), arguments.kernel.precision == Precision::float64, rows_repeat});
  }
  return text;
}

nlohmann::json fit_json(const gp::Model& model, const std::vector<QualityLine>& scores,
                        const FitArguments& arguments, const std::vector<std::string>& channels) {
  const Vector<double> amplitude = model.amplitude();
  nlohmann::json result{{"model", arguments.model.string()},
                        {"regularisers", nlohmann::json::array()},
                        {"amplitude", std::vector<double>(amplitude.begin(), amplitude.end())},
                        {"scores", nlohmann::json::array()}};
  if (model.learned())
    result["learned"] = nlohmann::json::parse(learned_json(*model.learned(), channels).dump());
  for (const gp::Selection& selection : model.selections())
    result["regularisers"].push_back(selection.best.value());
  for (const QualityLine& one : scores)
    result["scores"].push_back(nlohmann::json::parse(score_json(one, model.class_names()).dump()));
  return result;
}

/// Refuses what does not fit into memory, before anything is computed.
template <typename Scalar>
void require_room(const Network& network, const GpTask<Scalar>& task, const FitArguments& arguments) {
  GramOptions options = gram_options(arguments.kernel);
  if (options.kernels != Kernels::nngp) options.kernels = Kernels::both;
  const auto validation = task.validation ? static_cast<Index>(task.validation->size()) : 0;
  const gp::Criterion by = arguments.criterion();
  const Plan plan = naming_errors(arguments.network,
                                  [&] { return explain<Scalar>(network, task.train.inputs(), options, 0); });
  gp::Workload work{.work = gp::Work::model,
                    .needs = {.inputs = static_cast<Index>(task.train.size()) +
                                        (arguments.fit.options.refit ? validation : 0),
                              .entry_bytes = sizeof(Scalar),
                              .kernels = arguments.kernel.kernels,
                              .finite_times = arguments.fit.request.gives_time,
                              .validation = validation,
                              .test = static_cast<Index>(task.test.size()),
                              .outputs = task.train.targets->cols(),
                              .chooses = arguments.fit.request.chooses(),
                              .by_densities = by == gp::Criterion::leave_one_out ||
                                              by == gp::Criterion::negative_log_predictive_density,
                              .candidates = static_cast<Index>(arguments.fit.options.grid.size()),
                              .flip = arguments.fit.options.flip},
                    .plan = plan};
  // Matrices that are kept are computed as such.
  if (arguments.fit.options.gram_folder || arguments.fit.options.store_folder)
    work.plan->device_input_bytes = 0;
  gp::require_resources(
      "fit", gp::plan_resources(work, arguments.fit.options.solver, gp::MemoryRoom::here(options.threads)),
      work);
}

template <typename Scalar>
void run_fit(const FitArguments& arguments, const RunContext& context) {
  gp::Model::check_folder(arguments.model);
  check_output_files({.read = {{"--network", arguments.network},
                               {"--path", arguments.data.path},
                               {"--vectors", arguments.data.vectors},
                               {"--gram", arguments.fit.options.gram_folder.value_or("")},
                               {"--store", arguments.store.folder}},
                      .written = {{"--table", arguments.search.table},
                                  {"--plot", arguments.search.plot},
                                  {"--reliability", arguments.reliability}}});
  check_different_files({.read = {{"--path", arguments.data.path},
                                  {"--gram", arguments.fit.options.gram_folder.value_or("")},
                                  {"--store", arguments.store.folder}},
                         .written = {{"--model", arguments.model}, {"--out", arguments.output.folder}}});
  auto task =
      load_prepared_task<Scalar>(arguments.data, arguments.fit.options.flip, [&](const auto& unprepared) {
        if (arguments.fit.options.flip) require_images_for_flips(unprepared);
        require_meaning(unprepared, arguments);
      });
  const gp::FeatureMap varying = without_constants(task);
  const std::optional<gp::AutomaticNetwork> automatic =
      automatic_network_of(arguments, task, varying, context.interrupt);
  const Network network = automatic
                              ? automatic->network
                              : network_for_inputs(arguments.network, task.train.inputs(), arguments.depth);
  require_room(network, task, arguments);
  say("{}, {}\n", visible_text(task.description), to_string(arguments.kernel.precision));
  for (const std::string& note : task.notes) say("{}\n", visible_text(note));
  say("{}\n", rows_text(task, arguments));
  flush_standard_output();
  const files::FolderClaim claim(arguments.model);
  const auto folder = opened_folder(arguments);
  const gp::Model model = fitted_model(network, task, arguments, varying, automatic, context);
  context.interrupt.check();
  model.save(arguments.model);
  if (model.learned()) say("{}", learned_text(*model.learned(), task.channel_names));
  say("{}", model_text(model) + choice_text(model, arguments, task.repeated_rows > 0));
  const auto predicted = predictions_of(model, task, arguments, context.interrupt);
  TestQuality baselines;
  if (task.test.size() > 0 && task.test.targets) add_baselines(baselines, task);
  std::vector<QualityLine> scores = model_scores(model, predicted, baselines);
  if (!arguments.fit.options.refit)
    if (auto others = leave_one_out_scores(model, *task.train.targets))
      scores.insert(scores.begin(), std::move(*others));
  if (folder)
    write_predictions(*folder, model, task, predicted.back(), baselines, !arguments.output.no_report,
                      context);
  if (!scores.empty())
    say("{}", quality_table(scores) + class_table(of_the_model(scores), task.class_names) +
                  better_baseline_text(of_the_test(scores), baselines.baselines));
  if (prints_json()) {
    nlohmann::json result = fit_json(model, scores, arguments, task.channel_names);
    if (automatic) result["automatic"] = nlohmann::json::parse(automatic_json(*automatic).dump());
    print_result(result);
  }
  flush_standard_output();
  draw_curves(model, predicted, arguments, context.interrupt);
}

void add_fit_options(CLI::App& command, FitArguments& arguments) {
  add_value(command, "--network", arguments.network, std::string(network_argument_help) + " [auto]",
            "NETWORK");
  add_value(command, "--depth", arguments.depth, "Option depth of the named networks", whole_number<Index>(0),
            "D");
  add_data_options(command, arguments.data);
  add_kernel_options(command, arguments.kernel);
  command.get_option("--kernel")
      ->description("nngp: Bayesian posterior; ntk: networks after training [nngp]");
  add_fit_options(command, arguments.fit, {"time", "regulariser", "criterion", "grid", "amplitude"});
  add_solver_option(command, arguments.fit.options.solver, fit_help(gp::fit_field("solver")));
  add_fit_options(command, arguments.fit, {"residual", "refit", "targets_as_they_are", "transform"});
  add_search_options(command, arguments.search);
  add_fit_options(command, arguments.fit,
                  {"relevance", "learn_features", "diagonal", "flip", "gram_folder", "store_folder"});
  add_tile_options(command, *command.get_option("--store"), arguments.store);
  add_row_options(command, arguments.data);
  add_reliability_option(command, arguments.reliability);
  add_value(command, "--model", arguments.model,
            "Folder for the model; one that is there already is replaced", "DIR")
      ->required();
  add_value(command, "--out", arguments.output.folder,
            "Folder for predictions of the test data, with what widelimit predict writes", "DIR");
  add_force_option(command, arguments.output.other_files);
  add_no_report_option(command, arguments.output.no_report);
}

void fill_fit_command(CLI::App& command, const RunContext& context) {
  auto arguments = std::make_shared<FitArguments>();
  arguments->data.test_needed = false;
  add_config_option(command);
  add_json_option(command);
  add_fit_options(command, *arguments);
  command.footer(
      "Examples:\n"
      "  widelimit fit --network conv-gap --data sample --model sample-model\n"
      "  widelimit fit --network network.json --data npy --path arrays --kernel ntk --criterion loo --model "
      "m\n"
      "  widelimit fit --network conv-gap --data sample --search 'layers[0].weight_variance=0.5:4:log' "
      "--trials 20 --table trials.csv --plot trials.png --model best\n"
      "  widelimit fit --network fcn:axes=0 --data npy --path arrays --solver cg --device gpu --model m\n"
      "  widelimit predict --model m --x new.npy --out predictions");
  command.callback([arguments, &command, &context] {
    check_fit_arguments(command, *arguments);
    arguments->data.split = split_choice(command, arguments->data);
    arguments->data.split.reads_validation = arguments->reads_validation();
    leave_out_unread_validation(command, arguments->data);
    numerics::require_room_for_threads(arguments->kernel.threads);
    if (takes_double(command, {arguments->network})) arguments->kernel.precision = Precision::float64;
    if (arguments->kernel.precision == Precision::float32)
      run_fit<float>(*arguments, context);
    else
      run_fit<double>(*arguments, context);
  });
}

}  // namespace

const Command fit_command{"fit",
                          "Fits a model, a network with data, and keeps it in a folder for widelimit predict",
                          fill_fit_command};

}  // namespace widelimit::cli
