#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>

#include "cli/models/learning.hpp"
#include "cli/models/model_inputs.hpp"
#include "cli/models/model_predictions.hpp"
#include "cli/models/model_scores.hpp"
#include "cli/options/inference_options.hpp"
#include "cli/options/kernel_options.hpp"
#include "cli/options/ranges.hpp"
#include "cli/output/output_folder.hpp"
#include "cli/output/output_options.hpp"
#include "cli/output/progress_bar.hpp"
#include "cli/output/result_text.hpp"
#include "cli/program/commands.hpp"
#include "cli/program/given_arguments.hpp"
#include "cli/tasks/file_inputs.hpp"
#include "cli/tasks/gp_targets.hpp"
#include "cli/tasks/npy_inputs.hpp"
#include "widelimit/gp/model.hpp"
#include "widelimit/gp/resources.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/network/network_file.hpp"
#include "widelimit/numerics/memory.hpp"
#include "widelimit/text/visible_text.hpp"

namespace widelimit::cli {
namespace {

struct PredictArguments {
  std::filesystem::path model;
  ModelFiles inputs;
  std::vector<double> times;  ///< Empty: those of the model.
  std::filesystem::path out;
  Index samples = 0;
  Index prior_samples = 0;
  bool marginal = false;
  std::uint64_t seed = 0;
  int threads = 0;
  std::string device = "cpu";
  bool exact_attention = false;
  OtherFiles other_files = OtherFiles::refused;
  bool no_report = false;
};

std::vector<std::string> names_of(const std::vector<std::string>& known, const std::filesystem::path& file,
                                  Index count) {
  return known.empty() ? names_of_rows(file, static_cast<std::size_t>(count)) : known;
}

/// The inputs of whichever kind was given, with their memory.
class PredictInputs {
 public:
  PredictInputs(const ModelFiles& files, ModelInputs& prepared) {
    if (!prepared.sequences.empty()) {
      sequences_ = std::move(prepared.sequences);
      return;
    }
    InputFiles array = files.files;
    if (!files.table.empty()) array.x = files.table;
    files_.emplace(array, std::move(prepared.x));
  }

  [[nodiscard]] Inputs<double> inputs() const {
    return files_ ? files_->inputs() : Inputs<double>(sequences_);
  }
  [[nodiscard]] nlohmann::ordered_json shape() const {
    if (files_) return files_->shape();
    std::size_t longest = 0;
    for (const auto& sequence : sequences_) longest = std::max(longest, sequence.shape(0));
    return {sequences_.size(), longest, sequences_.front().shape(1)};
  }

 private:
  std::vector<xt::xarray<double>> sequences_;
  std::optional<FileInputs<double>> files_;
};

/// predictions.csv, results.json, whose text is returned, and the others.
std::string write_results(OutputFolder& folder, const gp::Model& model, const GpResult& result,
                          const ModelInputs& prepared, const PredictArguments& arguments,
                          const RunRecord& record) {
  const std::filesystem::path& file = arguments.inputs.inputs();
  const auto names = names_of(prepared.names, file, result.predictions.front().mean.rows());
  std::optional<TestQuality> quality;
  if (prepared.targets) quality = quality_of(result, *prepared.targets);
  PredictionFacts info = facts_of(model, fmt::format("{}: {} inputs", file.string(), names.size()), names);
  info.targets = &prepared.target_names;
  info.quality = quality ? &*quality : nullptr;
  info.missing = prepared.missing;
  info.unknown = prepared.unknown;
  const GpFaces faces{.pictures = {}, .texts = prepared.texts};
  return write_model_predictions(folder, result, info,
                                 {record.command, info.data, prepared.notes, record.shapes, ""},
                                 ReportTest{prepared.targets, faces}, !arguments.no_report);
}

/// [count, n, outputs]
void write_samples(OutputFolder& folder, const std::string& name,
                   const std::vector<Matrix<double>>& samples) {
  std::vector<double> numbers;
  numbers.reserve(samples.size() * static_cast<std::size_t>(samples.front().size()));
  for (const Matrix<double>& sample : samples)
    numbers.insert(numbers.end(), sample.data(), sample.data() + sample.size());
  folder.write_array(name, numbers.data(),
                     {static_cast<Index>(samples.size()), samples.front().rows(), samples.front().cols()});
}

/// The model's own time, and those that are asked for.
std::vector<double> times_for(const gp::Model& model, const std::vector<double>& asked) {
  if (!asked.empty() && model.kind() == gp::ModelKind::bayesian)
    throw ArgumentError(
        "--time: the model is a Bayesian posterior, which was not trained: leave it out, or fit with "
        "--kernel ntk");
  gp::FitRequest request;
  request.trained = request.gives_time = !asked.empty();
  request.gives_regulariser = true;
  request.solver = model.solver();
  if (const auto refusal = gp::fit_refusal(request, gp::Door::program))
    throw ArgumentError(fmt::format("--time: {} in the fit", refusal->reason));
  return prediction_times(model, asked.empty() ? model.times() : asked);
}

void check_truth(const ModelInputs& prepared, const ModelFiles& files, Index inputs) {
  if (prepared.targets && prepared.targets->rows() != inputs)
    fail_in(files.truth.empty() ? files.files.graphs / "labels.npy" : files.truth,
            "expected {} rows, one for each input, got {}", inputs, prepared.targets->rows());
}

/// Refuses what does not fit into memory, before anything is computed.
void require_room(const gp::Model& model, const Inputs<double>& x, const PredictArguments& arguments,
                  const GramOptions& run) {
  gp::Workload work =
      naming_errors(arguments.inputs.inputs().string(), [&] { return model.workload(x, run); });
  work.drawn = {arguments.samples, !arguments.marginal, arguments.prior_samples};
  gp::require_resources("predict",
                        gp::plan_resources(work, model.solver(), gp::MemoryRoom::here(run.threads)), work);
}

void run_predict(const PredictArguments& arguments, const RunContext& context) {
  GramOptions run;
  run.threads = arguments.threads;
  run.device = arguments.device;
  run.exact_attention = arguments.exact_attention;
  run.stop = context.interrupt.token();
  const gp::Model model = gp::Model::load(arguments.model, run);
  ModelInputs prepared = read_model_inputs(model, arguments.inputs);
  const PredictInputs inputs(arguments.inputs, prepared);
  const Inputs<double> x = inputs.inputs();
  check_truth(prepared, arguments.inputs, x.size());
  const std::vector<double> times = times_for(model, arguments.times);
  std::vector<std::string> written = prediction_file_names(times.size());
  written.insert(written.end(), {"samples.npy", "prior_samples.npy"});
  OutputFolder folder(arguments.out, written, arguments.other_files);
  folder.check_inputs(arguments.inputs.named());
  const auto sampling = arguments.marginal ? gp::Sampling::marginal : gp::Sampling::joint;
  const std::filesystem::path& file = arguments.inputs.inputs();
  if (const std::string warning = model.range_warning(x); !warning.empty())
    warn("{}: {}", file.string(), warning);
  if (std::string text = new_values_text(preparation_of(model), x); !text.empty())
    prepared.notes.push_back(std::move(text));
  if (const Index known = model.training_inputs_among(x); known > 0)
    prepared.notes.push_back(fmt::format(
        "{} of {} inputs are training inputs: how well these are predicted says little of new ones", known,
        x.size()));
  require_room(model, x, arguments, run);
  const auto start = std::chrono::steady_clock::now();
  const std::vector<gp::ModelPrediction> found = [&] {
    ProgressBar bar("predict", Counted::pairs, arguments.threads);
    run.progress = [&bar](const GramProgress& progress) { bar.show(progress.done, progress.total); };
    return naming_errors(file.string(), [&] { return model.predict(x, times, run); });
  }();
  run.progress = nullptr;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  RunRecord record{context.command_line, nlohmann::ordered_json::parse(to_json(model.network())), {}};
  record.shapes["x"] = inputs.shape();
  const GpResult result = kernel_predictions(model, found, times, prepared.targets, seconds);
  const std::string results = write_results(folder, model, result, prepared, arguments, record);
  if (prints_json()) print_result(nlohmann::json::parse(results));
  if (arguments.samples > 0)
    write_samples(folder, "samples.npy", model.samples(x, arguments.samples, arguments.seed, sampling, run));
  if (arguments.prior_samples > 0)
    write_samples(folder, "prior_samples.npy",
                  model.prior_samples(x, arguments.prior_samples, arguments.seed, run));
  folder.commit(record);
  say("{}", model_text(model));
  for (const std::string& note : prepared.notes) say("{}\n", visible_text(note));
  if (prepared.targets) {
    std::vector<QualityLine> lines;
    for (std::size_t i = 0; i < found.size(); ++i)
      lines.push_back(scores_of("new inputs" + at_time_text(model, times[i]), found[i], *prepared.targets));
    say("{}", quality_table(lines) + class_table(lines, model.class_names()));
  }
  say("{} predictions in {}\n", x.size(), visible_text(arguments.out.string()));
  flush_standard_output();
}

void add_input_options(CLI::App& command, ModelFiles& inputs) {
  InputFiles& files = inputs.files;
  CLI::Option* x =
      add_value(command, "--x", files.x,
                "Inputs [n, spatial..., channels], or [n, channels], as those of the training before their "
                "preprocessing, which the model applies; .npy of any numeric type, or ARCHIVE/NAME of an "
                ".npz or .safetensors file. Images are reduced to the "
                "size of the training images, and bytes divided by 255",
                "FILE");
  CLI::Option* csv = add_value(command, "--csv", inputs.table,
                               "In place of --x: rows of a table with the columns of the training table, for "
                               "models of fit --data csv; the column of the targets may be missing",
                               "FILE")
                         ->excludes(x);
  add_value(command, "--lengths", files.lengths,
            "True lengths [n] of padded sequences [n, longest, channels]; .npy of integers", "FILE")
      ->needs(x);
  add_value(command, "--mask", files.mask,
            "Mask [n, spatial...]: positions where it is 0 or false do not count; .npy of booleans", "FILE")
      ->needs(x);
  add_value(command, "--graphs", files.graphs, "In place of --x: a folder of graphs (docs/graphs.md)", "DIR")
      ->excludes(x)
      ->excludes(csv);
  CLI::Option* texts =
      add_value(command, "--texts", inputs.texts,
                "In place of --x, for models of texts: a folder of .txt files, or a file with a text a line",
                "PATH")
          ->excludes(x)
          ->excludes(csv);
  add_value(command, "--vectors", inputs.vectors,
            "The word vectors that the model was fitted with, which is checked; for --texts", "FILE")
      ->needs(texts);
  command
      .add_option_function<std::string>(
          "--unknown",
          [&inputs](const std::string& word) { inputs.unknown = unknown_inputs_of(word, "--unknown"); },
          "What becomes of categories of --csv, and of texts of --texts, of which the model knows nothing "
          "[that of fit]. "
          "error: the run stops; ignore: the cell is none of the categories, the text is left out")
      ->check(CLI::IsMember({"error", "ignore"}).description(""))
      ->type_name("error|ignore")
      ->excludes(x);
  add_value(command, "--y", inputs.truth,
            "The truth, to be compared with: labels [n] or targets [n, M] of the inputs of --x or --graphs; "
            ".npy. Of tables and graphs the column of targets and labels.npy are, where they are there",
            "FILE")
      ->excludes(csv)
      ->excludes(texts);
}

void fill_predict_command(CLI::App& command, const RunContext& context) {
  auto arguments = std::make_shared<PredictArguments>();
  add_config_option(command);
  add_json_option(command);
  add_value(command, "--model", arguments->model, "Folder that widelimit fit wrote", "DIR")->required();
  add_input_options(command, arguments->inputs);
  const auto count = [&](const char* name, Index& target, const char* description) {
    add_value(command, name, target, description, whole_number<Index>(0, 1'000'000), "N");
  };
  count("--samples", arguments->samples, "Functions to draw from the posterior at all inputs together [0]");
  command.add_flag("--marginal", arguments->marginal, "Draw the values at each input on their own")
      ->needs("--samples");
  count("--prior-samples", arguments->prior_samples, "Functions to draw from the prior [0]");
  add_number(command, "--seed", arguments->seed, "Of the samples", seed_number(), "K");
  add_value(command, "--time", arguments->times,
            "Predictions of networks trained for these times too, of models of --kernel ntk [those of fit]",
            number_not_negative(), "T1,T2,...")
      ->delimiter(',');
  add_number(command, "--threads", arguments->threads, "Worker threads; 0: one a core", thread_count(), "N");
  add_device_option(command, arguments->device);
  add_exact_attention_option(command, arguments->exact_attention);
  add_value(
      command, "--out", arguments->out,
      "Folder for mean.npy [n, M], standard_deviation.npy [n, M] (of the function, without noise), "
      "class_probabilities.npy [n, classes] (with _ntk_time0 and so on before the ending for other times), "
      "predictions.csv, results.json, report.html, samples.npy [N, n, M] and prior_samples.npy",
      "DIR")
      ->required();
  add_force_option(command, arguments->other_files);
  add_no_report_option(command, arguments->no_report);
  command.footer(
      "Examples:\n"
      "  widelimit predict --model model --x new.npy --samples 10 --out predictions\n"
      "  widelimit predict --model model --csv new.csv --out predictions");
  command.callback([arguments, &context] {
    if (arguments->inputs.inputs().empty())
      throw CLI::RequiredError("--x FILE, --csv FILE, --texts PATH or --graphs DIR");
    numerics::require_room_for_threads(arguments->threads);
    run_predict(*arguments, context);
  });
}

}  // namespace

const Command predict_command{"predict", "Predicts new inputs with a model of widelimit fit",
                              fill_predict_command};

}  // namespace widelimit::cli
