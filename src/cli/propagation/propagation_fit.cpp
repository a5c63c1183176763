#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cli/options/ranges.hpp"
#include "cli/options/similar_name.hpp"
#include "cli/output/result_text.hpp"
#include "cli/propagation/propagation_command.hpp"
#include "cli/propagation/propagation_model.hpp"
#include "widelimit/data/csv.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/propagation/loss_predictor.hpp"

namespace widelimit::cli {

using namespace propagation;

namespace {

struct PredictorArguments {
  std::filesystem::path file;
  PropagationModel model;
  PropagationOutput output;
  Index classes = 0, bootstrap = 200;
};

/// The same as the options of a network, which stand for what is no column.
constexpr std::array hyperparameters = {"alpha",   "alpha_A", "alpha_M", "sigma_w",   "sigma_out",
                                        "sigma_A", "tokens",  "depth",   "mlp_depth", "activation"};

/// One row of a table, with errors that name file and line.
class HyperparameterRow {
 public:
  HyperparameterRow(const std::string& file, const data::CsvTable& table, std::size_t row)
      : place_{fmt::format("{}:{}", file, table.lines[row])}, table_{table}, row_{row} {}

  [[nodiscard]] const std::string& place() const { return place_; }
  [[nodiscard]] const std::string& text(const char* column) const {
    return table_.rows[row_][table_.column(column)];
  }
  [[nodiscard]] double number(const char* column) const {
    const auto value = data::number_in_field(text(column));
    if (!value || !std::isfinite(*value))
      throw DataError(
          fmt::format("{}: {}: expected a finite number, got '{}'", place_, column, text(column)));
    return *value;
  }
  /// Reads it where the table has the column.
  template <typename Target>
  void read(const char* column, Target& target) const {
    if (has(column)) target = number(column);
  }
  void read(const char* column, std::string& target) const {
    if (has(column)) target = text(column);
  }
  [[nodiscard]] Index count(const char* column, double least, double most, Index otherwise) const {
    if (!has(column)) return otherwise;
    const double value = number(column);
    if (value != std::round(value) || value < least || value > most)
      throw DataError(fmt::format("{}: {}: expected a whole number from {:g} to {:g}, got {:g}", place_,
                                  column, least, most, value));
    return static_cast<Index>(value);
  }

 private:
  [[nodiscard]] bool has(const char* column) const {
    return std::find(table_.columns.begin(), table_.columns.end(), column) != table_.columns.end();
  }

  std::string place_;
  const data::CsvTable& table_;
  std::size_t row_;
};

/// The network of a row: the options', changed by the columns.
PropagationModel model_of(const HyperparameterRow& row, PropagationModel model) {
  row.read("alpha", model.alpha);
  row.read("alpha_A", model.alpha_A);
  row.read("alpha_M", model.alpha_M);
  row.read("sigma_w", model.sigma_w);
  row.read("sigma_out", model.sigma_out);
  row.read("sigma_A", model.sigma_A);
  row.read("depth", model.depth);
  row.read("activation", model.activation);
  model.tokens = row.count("tokens", 2, 1e9, model.tokens);
  model.mlp_depth = static_cast<int>(row.count("mlp_depth", 1, 1e6, model.mlp_depth));
  return model;
}

TrainingOutcome outcome_of(const HyperparameterRow& row, const PropagationModel& otherwise) {
  const double loss = row.number("loss");
  return naming_errors(row.place(), [&] {
    const PropagationModel model = model_of(row, otherwise);
    const Parameters parameters = model.parameters();
    ExponentOptions options;
    options.depth = model.depth;
    options.mask = model.mask();
    return TrainingOutcome{std::log1p(exponent(Exponent::angle, parameters, options)),
                           exponent(Exponent::gradient, parameters, options), loss};
  });
}

/// Losses beside the exponents that the file has, or else those of its hyperparameters.
struct FitInput {
  std::vector<TrainingOutcome> outcomes;
  PropagationModel model;  ///< Without the options that columns stand for.
  std::vector<std::string> unused = {};
};

using Columns = std::set<std::string>;

/// DataError for a column that looks like a mistyped one: it would be taken for one that is not there.
void check_names(const std::string& file, const Columns& columns) {
  if (columns.contains("causal"))
    throw DataError(fmt::format("{}: expected the mask of all runs as --causal, got a column of it", file));
  std::vector<std::string> known{"loss", "lambda_a", "lambda_g"};
  known.insert(known.end(), hyperparameters.begin(), hyperparameters.end());
  for (const std::string& column : columns)
    if (const auto meant = similar_name(column, known))
      throw DataError(fmt::format(
          "{}: the column '{}' is not known; expected {}, or another name for what the fit is not to use",
          file, column, *meant));
}

/// Those that the fit reads, of a table with exponents or with hyperparameters.
Columns used_columns(const Columns& columns, bool exponents, const PropagationModel& model) {
  Columns used{"loss"};
  const auto use = [&](const char* column) {
    if (columns.contains(column)) used.insert(column);
  };
  if (exponents) {
    for (const char* column : {"lambda_a", "lambda_g"}) use(column);
    return used;
  }
  for (const char* column : hyperparameters) use(column);
  // Exponents of equal tokens do not depend on the scale of the scores.
  used.erase("sigma_A");
  const bool sets_A = used.contains("alpha_A") || model.alpha_A,
             sets_M = used.contains("alpha_M") || model.alpha_M;
  if (sets_A && sets_M) used.erase("alpha");
  return used;
}

/// Options that the columns stand for.
void exclude_columns(PropagationModel& model, const Columns& used, bool exponents) {
  const std::string beside = "has no effect together with the column of the file",
                    no_effect = "has no effect on ";
  if (exponents) {
    const std::string why = no_effect + "the exponents lambda_a and lambda_g of the file";
    model.exclude_strengths(true, true, why);
    for (const char* option : {"--sigma-w", "--sigma-out", "--sigma-A", "--tokens", "--depth", "--mlp-depth",
                               "--activation", "--causal", "--skip", "--skip-A", "--skip-M"})
      model.exclude(option, why);
    return;
  }
  for (std::string column : used) {
    if (column == "loss") continue;
    std::replace(column.begin(), column.end(), '_', '-');
    model.exclude("--" + column, beside);
  }
  model.exclude_strengths(used.contains("alpha_A"), used.contains("alpha_M"), beside);
  // A strength of its own that an option gives stands beside the column alpha of both.
  if (used.contains("alpha") && !model.alpha_A) model.excluded.insert("--alpha-A");
  if (used.contains("alpha") && !model.alpha_M) model.excluded.insert("--alpha-M");
  model.exclude("--sigma-A", no_effect + "exponents of equal tokens");
}

void warn_of_columns(const std::string& file, const std::vector<std::string>& unused) {
  if (!unused.empty()) warn("{}: the fit does not use the columns {}", file, fmt::join(unused, ", "));
}

FitInput read_outcomes(const PredictorArguments& arguments) {
  const data::CsvTable table = data::read_csv(arguments.file, {.comments = data::CsvComments::hash_lines});
  const std::string file = arguments.file.string();
  const Columns columns(table.columns.begin(), table.columns.end());
  check_names(file, columns);
  const bool exponents = columns.contains("lambda_a") || columns.contains("lambda_g") ||
                         std::none_of(hyperparameters.begin(), hyperparameters.end(),
                                      [&](const char* column) { return columns.contains(column); });
  const Columns used = used_columns(columns, exponents, arguments.model);
  FitInput input{{}, arguments.model};
  for (const std::string& column : table.columns)
    if (!used.contains(column)) input.unused.push_back(column);
  if (exponents) input.outcomes = read_training_outcomes(arguments.file);
  exclude_columns(input.model, used, exponents);
  if (!exponents && !columns.contains("loss"))
    throw DataError(fmt::format("{}: expected a column loss, there is none", file));
  for (std::size_t row = 0; !exponents && row < table.rows.size(); ++row)
    input.outcomes.push_back(outcome_of({file, table, row}, input.model));
  warn_of_columns(file, input.unused);
  return input;
}

void run_fit(const PredictorArguments& arguments) {
  check_output(arguments.output, {.read = {{"the table", arguments.file}}});
  const FitInput input = read_outcomes(arguments);
  const std::vector<TrainingOutcome>& outcomes = input.outcomes;
  const double ceiling = arguments.classes > 1 ? std::log(static_cast<double>(arguments.classes)) : HUGE_VAL;
  const PredictorFit fit =
      naming_errors(arguments.file.string(), [&] { return fit_loss_predictor(outcomes, ceiling); });
  const LossPredictor errors = bootstrap_errors(outcomes, fit, arguments.bootstrap);
  nlohmann::json settings{{"file", arguments.file.string()}, {"bootstrap", arguments.bootstrap}};
  if (arguments.classes > 1) settings["classes"] = arguments.classes;
  ResultTable table = table_of("fit", input.model, settings);
  table.summary = {{"columns_not_used", input.unused},
                   {"weight_a", fit.predictor.weight_a},
                   {"weight_g", fit.predictor.weight_g},
                   {"bias", fit.predictor.bias},
                   {"weight_a_error", errors.weight_a},
                   {"weight_g_error", errors.weight_g},
                   {"bias_error", errors.bias},
                   {"root_mean_square_error", fit.root_mean_square_error},
                   {"explained_variance", fit.explained_variance},
                   {"rank_correlation", fit.rank_correlation}};
  table.columns = {"lambda_a", "lambda_g", "loss", "predicted"};
  for (const TrainingOutcome& outcome : outcomes)
    table.rows.push_back({outcome.lambda_a, outcome.lambda_g, outcome.loss,
                          fit.predictor(outcome.lambda_a, outcome.lambda_g)});
  write_table(arguments.output, table);
}

}  // namespace

void add_propagation_fit_command(CLI::App& propagation) {
  auto arguments = std::make_shared<PredictorArguments>();
  CLI::App* command = propagation.add_subcommand("fit", "Fits the loss predictor to trained networks");
  add_value(*command, "file", arguments->file,
            "CSV with the column loss and either lambda_a and lambda_g or hyperparameters", "FILE.csv")
      ->required();
  add_model_options(*command, arguments->model);
  add_value(*command, "--classes", arguments->classes,
            "Classes of the task, at least 2: the ceiling of losses is their log [none]",
            whole_number<Index>(2, 1'000'000'000), "N");
  add_number(*command, "--bootstrap", arguments->bootstrap,
             "Samples after the standard errors of the weights, 2 to 1000000",
             whole_number<Index>(2, 1'000'000), "N");
  add_output_options(*command, arguments->output, "");
  command->footer(
      "Columns of hyperparameters: alpha, alpha_A, alpha_M, sigma_w, sigma_out, tokens, depth, mlp_depth, "
      "activation; those that are missing are as the options say. The angle exponent is then ln(1 + "
      "lambda_a).\n\nOther columns are named in a warning and in columns_not_used; names one or two letters "
      "off are errors.");
  command->callback([arguments] { run_fit(*arguments); });
}

}  // namespace widelimit::cli
