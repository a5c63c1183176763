#include "cli/options/inference_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/options/ranges.hpp"
#include "cli/options/table_options.hpp"

namespace widelimit::cli {
namespace {

constexpr gp::Door here = gp::Door::program;

/// What a row holds where the command line says these texts.
nlohmann::json field_value(const gp::FitField& field, const std::vector<std::string>& texts) {
  // Names of folders are texts, numbers or not.
  if (field.values.hold("any text")) return texts.front();
  nlohmann::json values = nlohmann::json::array();
  for (const std::string& text : texts) values.push_back(value_of_text(text));
  return field.is_list() ? values : values.front();
}

}  // namespace

std::string fit_help(const gp::FitField& field) {
  const std::string meaning = gp::in_words_of(here, field.meaning);
  return field.is_flag() ? meaning
                         : fmt::format("{} [{}]", meaning, gp::in_words_of(here, field.default_value));
}

void add_fit_options(CLI::App& command, FitChoice& choice, const std::vector<std::string_view>& names) {
  for (const std::string_view name : names) {
    const gp::FitField& field = gp::fit_field(name);
    gp::ModelOptions& options = choice.options;
    if (field.is_flag()) {
      command.add_flag_callback(
          field.option, [&field, &options] { field.set(options, true); }, fit_help(field));
      continue;
    }
    const auto read = [&field, &options](const std::vector<std::string>& texts) {
      field.set(options, field_value(field, texts));
    };
    CLI::Option* option =
        command.add_option_function<std::vector<std::string>>(field.option, read, fit_help(field))
            ->type_name(field.placeholder)
            ->check(values_check(field.values,
                                 [&field](const std::string& text) { return field_value(field, {text}); }));
    if (field.is_list())
      option->delimiter(',');
    else
      option->expected(1);
  }
}

template <typename Target>
void add_solver_option(CLI::App& command, Target& solver, const std::string& text) {
  const auto& words = gp::solver_words();
  const gp::FitField& field = gp::fit_field("solver");
  add_choice<gp::Solver>(command, field.option, solver, {words.begin(), words.end()}, field.placeholder,
                         text);
}

template void add_solver_option(CLI::App&, gp::Solver&, const std::string&);
template void add_solver_option(CLI::App&, std::optional<gp::Solver>&, const std::string&);

void check_fit_usage(const CLI::App& command, Kernels kernels, bool is_model, FitChoice& choice) {
  const auto given = [&command](std::string_view option) {
    const CLI::Option* found = command.get_option_no_throw(std::string(option));
    return found != nullptr && found->count() > 0;
  };
  gp::FitRequest& request = choice.request;
  choice.options.door = here;
  if (kernels == Kernels::ntk) choice.options.kind = gp::ModelKind::trained;
  request.trained = kernels != Kernels::nngp;
  request.is_model = is_model;
  request.gives_time = given("--time");
  request.gives_regulariser = given("--regulariser");
  request.knows_noise = given("--noise-variance");
  request.weighs = given("--weight");
  request.groups = given("--groups");
  request.gives_candidates = given("--candidates");
  request.criterion = choice.options.criterion;
  request.has_amplitude = given("--amplitude");
  request.refits = given("--refit");
  request.searches = given("--search");
  request.relevance = given("--relevance");
  request.features = choice.options.learning.rounds > 0 && given("--learn-features");
  request.diagonal = given("--diagonal");
  request.flips = given("--flip");
  request.keeps_matrices = given("--gram");
  request.stores_matrices = given("--store");
  if (given("--solver")) request.solver = choice.options.solver;
  request.gives_residual = given("--residual");
  if (const auto refusal = gp::fit_refusal(request, here))
    throw CLI::ValidationError(refusal->field, refusal->reason);
}

const char* criterion_title(gp::Criterion criterion) {
  switch (criterion) {
    case gp::Criterion::accuracy:
      return "validation accuracy";
    case gp::Criterion::mean_squared_error:
      return "validation mean squared error";
    case gp::Criterion::negative_log_predictive_density:
      return "validation negative log predictive density";
    case gp::Criterion::evidence:
      return "log marginal likelihood";
    case gp::Criterion::leave_one_out:
      return "leave-one-out negative log density";
  }
  return "";
}

bool higher_is_better(gp::Criterion criterion) {
  return criterion == gp::Criterion::accuracy || criterion == gp::Criterion::evidence;
}

double score_by(const gp::RegulariserScore& score, gp::Criterion criterion) {
  switch (criterion) {
    case gp::Criterion::accuracy:
      return score.accuracy;
    case gp::Criterion::mean_squared_error:
      return score.mean_squared_error;
    case gp::Criterion::negative_log_predictive_density:
      return score.negative_log_predictive_density;
    case gp::Criterion::evidence:
      return score.log_marginal_likelihood;
    case gp::Criterion::leave_one_out:
      return score.leave_one_out;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

const char* criterion_name(gp::Criterion criterion) {
  for (const auto& [word, value] : gp::criterion_words())
    if (value == criterion) return word.c_str();
  return "";
}

}  // namespace widelimit::cli
