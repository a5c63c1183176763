#include "cli/options/inference_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/options/table_options.hpp"

namespace widelimit::cli {
namespace {

constexpr gp::Door here = gp::Door::program;

}  // namespace

std::string fit_help(const gp::FitField& field) {
  const std::string meaning = gp::in_words_of(here, field.meaning);
  return field.is_flag() ? meaning
                         : fmt::format("{} [{}]", meaning, gp::in_words_of(here, field.default_value));
}

CLI::Validator fit_range(const gp::FitField& field) {
  return CLI::Validator(
      [values = field.values](const std::string& text) {
        const nlohmann::json value = value_of_text(text);
        // Of a list each of its values comes here.
        return values.hold(value) || values.hold(nlohmann::json::array({value}))
                   ? std::string()
                   : fmt::format("must be {}, got {}", values.expected(), text);
      },
      "");
}

void add_fit_flag(CLI::App& command, std::string_view name, bool& target) {
  const gp::FitField& field = gp::fit_field(name);
  command.add_flag(field.option, target, fit_help(field));
}

void add_regulariser_options(CLI::App& command, RegulariserChoice& choice) {
  add_fit_option(command, "regulariser", choice.regulariser);
  const gp::FitField& criterion = gp::fit_field("criterion");
  const auto choose = [&choice](const std::string& word) {
    for (const auto& [known, value] : gp::criterion_words())
      if (known == word) choice.criterion = value;
  };
  command.add_option_function<std::string>(criterion.option, choose, fit_help(criterion))
      ->check(fit_range(criterion))
      ->type_name(criterion.placeholder);
  add_fit_option(command, "grid", choice.candidates)->delimiter(',');
  add_fit_option(command, "amplitude", choice.amplitude);
}

CLI::Option* add_solver_option(CLI::App& command, std::optional<gp::Solver>& solver) {
  const gp::FitField& field = gp::fit_field("solver");
  return add_choice<gp::Solver>(command, field.option, solver,
                                {{"cholesky", gp::Solver::cholesky},
                                 {"cg", gp::Solver::conjugate_gradients},
                                 {"distributed", gp::Solver::distributed}},
                                field.placeholder, fit_help(field));
}

gp::FitRequest given_request(const CLI::App& command, const RegulariserChoice& choice, Kernels kernels,
                             std::optional<gp::Solver> solver) {
  const auto given = [&command](const char* option) {
    const CLI::Option* found = command.get_option_no_throw(option);
    return found != nullptr && found->count() > 0;
  };
  gp::FitRequest request;
  request.trained = kernels != Kernels::nngp;
  request.gives_time = given("--time");
  request.gives_regulariser = choice.regulariser.has_value();
  request.knows_noise = given("--noise-variance");
  request.weighs = given("--weight");
  request.gives_candidates = given("--candidates");
  request.criterion = choice.criterion;
  request.has_amplitude = choice.amplitude.has_value();
  request.refits = given("--refit");
  request.searches = given("--search");
  request.relevance = given("--relevance");
  request.features = given("--learn-features") && command.get_option("--learn-features")->as<int>() > 0;
  request.diagonal = given("--diagonal");
  request.flips = given("--flip");
  request.keeps_matrices = given("--gram");
  request.stores_matrices = given("--store");
  request.solver = solver;
  request.gives_residual = given("--residual");
  return request;
}

void check_fit_usage(const gp::FitRequest& request) {
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
