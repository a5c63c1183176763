#include "cli/options/inference_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <map>

#include "cli/options/ranges.hpp"

namespace widelimit::cli {
namespace {

const std::map<std::string, gp::Criterion>& criteria() {
  static const std::map<std::string, gp::Criterion> words{
      {"accuracy", gp::Criterion::accuracy},
      {"mse", gp::Criterion::mean_squared_error},
      {"nlpd", gp::Criterion::negative_log_predictive_density},
      {"evidence", gp::Criterion::evidence},
      {"loo", gp::Criterion::leave_one_out}};
  return words;
}

}  // namespace

void add_regulariser_options(CLI::App& command, RegulariserChoice& choice) {
  add_value(command, "--regulariser", choice.regulariser,
            "Noise variance relative to the mean diagonal of the kernel; chosen by --criterion if left out",
            positive_number(), "R");
  command
      .add_option_function<std::string>(
          "--criterion", [&choice](const std::string& word) { choice.criterion = criteria().at(word); },
          "What to choose by: accuracy, mse or nlpd (negative log predictive density) of the "
          "validation data, evidence (log marginal likelihood, of the NNGP), or loo "
          "(leave-one-out density), which take no validation data [loo; with --solver cg, mse]")
      ->check(CLI::IsMember(criteria()).description(""))
      ->type_name("accuracy|mse|nlpd|evidence|loo");
  add_value(command, "--candidates", choice.candidates,
            "Regularisers to choose from [19 from 1e-7 to 100, two a decade]", positive_number(), "R1,R2,...")
      ->delimiter(',');
  add_value(command, "--amplitude", choice.amplitude,
            "Factor on the kernels of standardised targets, 1 for networks as they are; it scales variances, "
            "not means [fitted to the training targets: by evidence for nngp, leave-one-out for ntk]",
            positive_number(), "A");
}

void check_regulariser_usage(const CLI::App& command, const RegulariserChoice& choice, bool searches,
                             bool has_trained) {
  constexpr const char* known = "--noise-variance";
  for (const char* option : {"--regulariser", "--criterion", "--candidates"})
    if (command.count(known) > 0 && command.count(option) > 0)
      throw CLI::ValidationError(known, fmt::format("the noise is known: leave out {}", option));
  for (const char* option : {"--criterion", "--candidates"})
    if (choice.regulariser && command.count(option) > 0 &&
        !(searches && std::string(option) == "--criterion"))
      throw CLI::ValidationError(option, "there is nothing to choose with --regulariser");
  if (choice.criterion == gp::Criterion::evidence && has_trained)
    throw CLI::ValidationError("--criterion",
                               "trained networks have no evidence: --kernel nngp, or another criterion");
}

void add_solver_option(CLI::App& command, std::optional<gp::Solver>& solver, const std::string& text) {
  add_choice<gp::Solver>(command, "--solver", solver,
                         {{"cholesky", gp::Solver::cholesky},
                          {"cg", gp::Solver::conjugate_gradients},
                          {"distributed", gp::Solver::distributed}},
                         "cholesky|cg|distributed", text);
}

void add_residual_option(CLI::App& command, double& residual) {
  add_number(command, "--residual", residual, "Relative residual at which conjugate gradients stop",
             number_between_0_and_1(), "E");
}

void add_gram_option(CLI::App& command, std::filesystem::path& folder) {
  add_value(command, "--gram", folder,
            "Folder in which Gram matrices are kept: those that are there are read, others are computed",
            "DIR");
}

void add_refit_option(CLI::App& command, bool& refit) {
  command.add_flag("--refit", refit,
                   "Fit on training and validation data together once the regulariser is chosen");
}

void add_flip_option(CLI::App& command, bool& flip) {
  command.add_flag("--flip", flip,
                   "Average kernels over images and mirror images: two to four times the work");
}

void add_targets_option(CLI::App& command, bool& as_they_are) {
  command.add_flag("--targets-as-they-are", as_they_are,
                   "Fit numbers as they are; without it each output is centred and divided by its standard "
                   "deviation over the training inputs, and predictions are put back");
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
  for (const auto& [word, value] : criteria())
    if (value == criterion) return word.c_str();
  return "";
}

}  // namespace widelimit::cli
