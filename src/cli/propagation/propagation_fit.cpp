#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
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
#include "widelimit/propagation/fields.hpp"
#include "widelimit/propagation/results.hpp"

namespace widelimit::cli {

using namespace propagation;
using nlohmann::json;

namespace {

std::pair<Transformer, FitTask> read_of_fit(ConfigReader& fields) {
  return {read_transformer(fields), read_fit(fields)};
}

struct PredictorArguments {
  std::filesystem::path file;
  PropagationOptions options;
  PropagationOutput output;
};

/// Columns that are fields of a network; options stand for what is no column. The mask is that of all runs.
const std::vector<std::string>& hyperparameters() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const ConfigField& field : computation("fit_losses").transformer)
      if (std::string_view(field.name) != "causal") all.emplace_back(field.name);
    return all;
  }();
  return names;
}

/// Fields of both branches, each of which may have its own: "alpha_A", "alpha_M".
constexpr std::array of_both = {"alpha", "skip"};

/// One trained network; `options` stand for what is no column.
TrainingOutcome outcome_of(const data::CsvTable& table, std::size_t row, const std::set<std::string>& used,
                           const PropagationOptions& options) {
  json values = json::object();
  double loss = 0;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    const std::string &name = table.columns[column], &text = table.rows[row][column];
    const auto number = data::number_in_field(text);
    if (name == "loss" && (!number || !std::isfinite(*number)))
      throw DataError(fmt::format("loss: expected a finite number, got '{}'", text));
    if (name == "loss")
      loss = *number;
    else if (used.contains(name))
      values[name] = number ? value_of_text(fmt::format("{}", *number)) : json(text);
  }
  const auto [transformer, task] = options.with(values).read(read_of_fit);
  const ExponentOptions exponents = transformer.exponent_options();
  return {std::log1p(exponent(Exponent::angle, transformer.parameters, exponents)),
          exponent(Exponent::gradient, transformer.parameters, exponents), loss};
}

/// Losses beside the exponents that the file has, or else those of its hyperparameters.
struct FitInput {
  std::vector<TrainingOutcome> outcomes;
  PropagationOptions options;  ///< Without those that columns stand for.
  std::vector<std::string> unused = {};
};

using Columns = std::set<std::string>;

/// DataError for a column that looks like a mistyped one: it would be taken for one that is not there.
void check_names(const std::string& file, const Columns& columns) {
  if (columns.contains("causal"))
    throw DataError(fmt::format("{}: expected the mask of all runs as --causal, got a column of it", file));
  std::vector<std::string> known{"loss", "lambda_a", "lambda_g"};
  known.insert(known.end(), hyperparameters().begin(), hyperparameters().end());
  for (const std::string& column : columns)
    if (const auto meant = similar_name(column, known))
      throw DataError(fmt::format(
          "{}: the column '{}' is not known; expected {}, or another name for what the fit is not to use",
          file, column, *meant));
}

/// Those that the fit reads, of a table with exponents or with hyperparameters.
Columns used_columns(const Columns& columns, bool exponents, const PropagationOptions& options) {
  Columns used{"loss"};
  const auto use = [&](const std::string& column) {
    if (columns.contains(column)) used.insert(column);
  };
  if (exponents) {
    for (const char* column : {"lambda_a", "lambda_g"}) use(column);
    return used;
  }
  for (const std::string& column : hyperparameters()) use(column);
  // Exponents of equal tokens do not depend on the scale of the scores.
  used.erase("sigma_A");
  const auto sets = [&](const std::string& field) { return used.contains(field) || options.has(field); };
  for (const std::string both : of_both)
    if (sets(both + "_A") && sets(both + "_M")) used.erase(both);
  return used;
}

/// Options that the columns stand for.
void exclude_columns(PropagationOptions& options, const Columns& used, bool exponents) {
  const std::string beside = "has no effect together with the column of the file",
                    no_effect = "has no effect on ";
  if (exponents) {
    for (const ConfigField& field : computation("fit_losses").transformer)
      options.exclude(field.name, no_effect + "the exponents lambda_a and lambda_g of the file");
    return;
  }
  for (const std::string& column : used)
    if (column != "loss") options.exclude(column, beside);
  for (const std::string both : of_both) {
    options.exclude_both(both, used.contains(both + "_A"), used.contains(both + "_M"), beside);
    // What an option gives of one branch stands beside the column of both.
    for (const std::string& own : {both + "_A", both + "_M"})
      if (used.contains(both) && !options.has(own)) options.leave_out(own);
  }
  options.exclude("sigma_A", no_effect + "exponents of equal tokens");
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
                         std::ranges::none_of(hyperparameters(), [&](const std::string& column) {
                           return columns.contains(column);
                         });
  const Columns used = used_columns(columns, exponents, arguments.options);
  FitInput input{{}, arguments.options};
  for (const std::string& column : table.columns)
    if (!used.contains(column)) input.unused.push_back(column);
  if (exponents) input.outcomes = read_training_outcomes(arguments.file);
  exclude_columns(input.options, used, exponents);
  if (!exponents && !columns.contains("loss"))
    throw DataError(fmt::format("{}: expected a column loss, there is none", file));
  for (std::size_t row = 0; !exponents && row < table.rows.size(); ++row)
    input.outcomes.push_back(naming_errors(fmt::format("{}:{}", file, table.lines[row]),
                                           [&] { return outcome_of(table, row, used, input.options); }));
  warn_of_columns(file, input.unused);
  return input;
}

void run_fit(const PredictorArguments& arguments) {
  check_output(arguments.output, {.read = {{"the table", arguments.file}}});
  const FitInput input = read_outcomes(arguments);
  const std::vector<TrainingOutcome>& outcomes = input.outcomes;
  const auto [transformer, task] = input.options.read(read_of_fit);
  const PredictorFit fit = naming_errors(
      arguments.file.string(), [&, ceiling = task.ceiling] { return fit_loss_predictor(outcomes, ceiling); });
  const LossPredictor errors = bootstrap_errors(outcomes, fit, task.bootstrap, task.seed);
  json settings{{"file", arguments.file.string()}, {"bootstrap", task.bootstrap}};
  if (input.options.has("classes")) settings["classes"] = input.options.given("classes");
  ResultTable table = table_of("fit", input.options, transformer, settings);
  if (input.options.has("seed")) table.origin.seed = task.seed;
  table.summary = fit_results(fit, errors);
  table.summary["columns_not_used"] = input.unused;
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
  arguments->options.add_computation(*command, "fit_losses");
  add_output_options(*command, arguments->output, "");
  command->footer(fmt::format(
      "Columns of hyperparameters: {}; those that are missing are as the options say. sigma_A has no effect. "
      "The angle exponent is then ln(1 + lambda_a).\n\nOther columns are named in a warning and in "
      "columns_not_used; names one or two letters off are errors, and so is a column causal.",
      fmt::join(hyperparameters(), ", ")));
  command->callback([arguments] { run_fit(*arguments); });
}

}  // namespace widelimit::cli
