#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>

#include "cli/commands.hpp"
#include "cli/file_inputs.hpp"
#include "cli/gp_predictions_csv.hpp"
#include "cli/model_inputs.hpp"
#include "cli/model_scores.hpp"
#include "cli/output_folder.hpp"
#include "cli/output_options.hpp"
#include "cli/progress_bar.hpp"
#include "cli/ranges.hpp"
#include "cli/standard_output.hpp"
#include "widelimit/gp/metrics.hpp"
#include "widelimit/gp/model.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::cli {
namespace {

struct PredictArguments {
  std::filesystem::path model;
  InputFiles files;
  std::filesystem::path table;
  std::filesystem::path out;
  Index samples = 0;
  Index prior_samples = 0;
  bool marginal = false;
  std::uint64_t seed = 0;
  int threads = 0;
  OtherFiles other_files = OtherFiles::refused;
};

const std::vector<std::string>& prediction_file_names() {
  static const std::vector<std::string> names{
      "mean.npy",    "standard_deviation.npy", "class_probabilities.npy",
      "samples.npy", "prior_samples.npy",      "predictions.csv"};
  return names;
}

/// One row an input: its number and name, if it has one, class and its probability, deviation, means.
std::string predictions_csv(const gp::Model& model, const gp::ModelPrediction& prediction,
                            const std::vector<std::string>& names) {
  const bool classes = !model.class_names().empty();
  const std::vector<int> chosen = classes ? gp::classes_of(prediction.mean) : std::vector<int>{};
  std::string text = names.empty() ? "index" : "index,id";
  text += classes ? ",class,probability,standard_deviation" : "";
  if (!classes && prediction.mean.cols() == 1) text += ",standard_deviation";
  if (!classes && prediction.mean.cols() > 1)
    for (Index k = 0; k < prediction.mean.cols(); ++k) text += fmt::format(",standard_deviation_{}", k);
  for (Index k = 0; k < prediction.mean.cols(); ++k)
    text += classes && prediction.mean.cols() > 1
                ? fmt::format(",{}", csv_field("mean_" + model.class_names()[static_cast<std::size_t>(k)]))
                : fmt::format(",mean_{}", k);
  text += '\n';
  const auto out = std::back_inserter(text);
  for (Index i = 0; i < prediction.mean.rows(); ++i) {
    fmt::format_to(out, "{}", i);
    if (!names.empty()) fmt::format_to(out, ",{}", csv_field(names[static_cast<std::size_t>(i)]));
    if (classes) {
      const int c = chosen[static_cast<std::size_t>(i)];
      fmt::format_to(out, ",{},{:.17g}", csv_field(model.class_names()[static_cast<std::size_t>(c)]),
                     prediction.class_probabilities(i, c));
    }
    // Classes share one deviation.
    for (Index k = 0; k < (classes ? 1 : prediction.mean.cols()); ++k)
      fmt::format_to(out, ",{:.17g}", std::sqrt(prediction.variance(i, k)));
    for (Index k = 0; k < prediction.mean.cols(); ++k) fmt::format_to(out, ",{:.17g}", prediction.mean(i, k));
    text += '\n';
  }
  return text;
}

/// [count, n, outputs]
void write_samples(OutputFolder& folder, const std::string& name,
                   const std::vector<Matrix<double>>& samples) {
  std::vector<double> numbers;
  for (const Matrix<double>& sample : samples)
    numbers.insert(numbers.end(), sample.data(), sample.data() + sample.size());
  folder.write_array(name, numbers.data(),
                     {static_cast<Index>(samples.size()), samples.front().rows(), samples.front().cols()});
}

void run_predict(const PredictArguments& arguments, const RunContext& context) {
  GramOptions run;
  run.threads = arguments.threads;
  run.stop = context.interrupt.token();
  const gp::Model model = gp::Model::load(arguments.model, run);
  ModelInputs prepared = read_model_inputs(model, arguments.files, arguments.table);
  InputFiles files = arguments.files;
  if (!arguments.table.empty()) files.x = arguments.table;
  const FileInputs<double> inputs(files, std::move(prepared.x));
  const Inputs<double>& x = inputs.inputs();
  OutputFolder folder(arguments.out, prediction_file_names(), arguments.other_files);
  folder.check_inputs(arguments.files.named());
  folder.check_inputs({{"--csv", arguments.table}});
  const auto sampling = arguments.marginal ? gp::Sampling::marginal : gp::Sampling::joint;
  const std::filesystem::path& file = files.x.empty() ? files.graphs : files.x;
  if (const std::string warning = model.range_warning(x); !warning.empty())
    fmt::print(stderr, "widelimit: warning: {}: {}\n", file.string(), warning);
  ProgressBar bar("predict");
  run.progress = [&bar](const GramProgress& progress) { bar.show(progress.done, progress.total); };
  const gp::ModelPrediction prediction = naming_errors(file.string(), [&] { return model.predict(x, run); });
  folder.write("mean.npy", prediction.mean);
  folder.write("standard_deviation.npy", prediction.standard_deviation());
  if (prediction.class_probabilities.size() > 0)
    folder.write("class_probabilities.npy", prediction.class_probabilities);
  folder.write("predictions.csv", predictions_csv(model, prediction, prepared.names));
  if (arguments.samples > 0)
    write_samples(folder, "samples.npy", model.samples(x, arguments.samples, arguments.seed, sampling, run));
  if (arguments.prior_samples > 0)
    write_samples(folder, "prior_samples.npy",
                  model.prior_samples(x, arguments.prior_samples, arguments.seed, run));
  RunRecord record{context.command_line, nlohmann::ordered_json::parse(to_json(model.network())), {}};
  record.shapes["x"] = inputs.shape();
  folder.commit(record);
  fmt::print("{}{} predictions in {}\n", model_text(model), x.size(), arguments.out.string());
  flush_standard_output();
}

void add_input_options(CLI::App& command, InputFiles& files, std::filesystem::path& table) {
  CLI::Option* x =
      command
          .add_option("--x", files.x,
                      "Inputs [n, spatial..., channels], or [n, channels], as those of the training before "
                      "their preprocessing, which the model applies; .npy of any numeric type. Images are "
                      "reduced to the size of the training images, and bytes divided by 255")
          ->type_name("FILE");
  CLI::Option* csv =
      command
          .add_option("--csv", table,
                      "In place of --x: rows of a table with the columns of the training table, for models "
                      "of fit --data csv; the column of the targets may be missing")
          ->type_name("FILE")
          ->excludes(x);
  command
      .add_option("--lengths", files.lengths,
                  "True lengths [n] of padded sequences [n, longest, channels]; .npy of integers")
      ->type_name("FILE")
      ->needs(x);
  command
      .add_option("--mask", files.mask,
                  "Mask [n, spatial...]: positions where it is 0 or false do not count; .npy of booleans")
      ->type_name("FILE")
      ->needs(x);
  command.add_option("--graphs", files.graphs, "In place of --x: a folder of graphs (docs/graphs.md)")
      ->type_name("DIR")
      ->excludes(x)
      ->excludes(csv);
}

}  // namespace

void add_predict_command(CLI::App& program, const RunContext& context) {
  auto arguments = std::make_shared<PredictArguments>();
  CLI::App* command = program.add_subcommand("predict", "Predicts new inputs with a model of widelimit fit");
  command->add_option("--model", arguments->model, "Folder that widelimit fit wrote")
      ->required()
      ->type_name("DIR");
  add_input_options(*command, arguments->files, arguments->table);
  const auto count = [&](const char* name, Index& target, const char* description) {
    command->add_option(name, target, description)->check(whole_number<Index>(0, 1'000'000))->type_name("N");
  };
  count("--samples", arguments->samples, "Functions to draw from the posterior at all inputs together [0]");
  command->add_flag("--marginal", arguments->marginal, "Draw the values at each input on their own")
      ->needs("--samples");
  count("--prior-samples", arguments->prior_samples, "Functions to draw from the prior [0]");
  command->add_option("--seed", arguments->seed, "Of the samples [0]")->check(seed_number())->type_name("K");
  command->add_option("--threads", arguments->threads, "Worker threads; 0: one a core [0]")
      ->check(thread_count())
      ->type_name("N");
  command
      ->add_option(
          "--out", arguments->out,
          "Folder for mean.npy [n, M], standard_deviation.npy [n, M] (of the function, without noise), "
          "class_probabilities.npy [n, classes], predictions.csv, samples.npy [N, n, M] and "
          "prior_samples.npy")
      ->required()
      ->type_name("DIR");
  add_force_option(*command, arguments->other_files);
  command->footer(
      "Examples:\n"
      "  widelimit predict --model model --x new.npy --samples 10 --out predictions\n"
      "  widelimit predict --model model --csv new.csv --out predictions");
  command->callback([arguments, &context] {
    if (!arguments->files.given() && arguments->table.empty())
      throw CLI::RequiredError("--x FILE, --csv FILE or --graphs DIR");
    run_predict(*arguments, context);
  });
}

}  // namespace widelimit::cli
