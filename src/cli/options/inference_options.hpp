#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/ranges.hpp"
#include "widelimit/gp/fit_fields.hpp"
#include "widelimit/gp/selection.hpp"
#include "widelimit/gp/solver_choice.hpp"
#include "widelimit/kernel/gram.hpp"

namespace widelimit::cli {

/// "Sentence [default]", in the words of the program.
[[nodiscard]] std::string fit_help(const gp::FitField& field);

[[nodiscard]] CLI::Validator fit_range(const gp::FitField& field);

/// How a regulariser is found, and the amplitude beside it: the options that gp and fit have in common.
struct RegulariserChoice {
  std::optional<double> regulariser;
  std::optional<gp::Criterion> criterion;
  std::vector<double> candidates = gp::regulariser_grid();
  std::optional<double> amplitude;
};

/// The option of a row of the table of fitting, with the row's help and range.
template <typename Value>
CLI::Option* add_fit_option(CLI::App& command, std::string_view name, Value& target) {
  const gp::FitField& field = gp::fit_field(name);
  return add_value(command, field.option, target, fit_help(field), fit_range(field), field.placeholder);
}

/// The same of a flag.
void add_fit_flag(CLI::App& command, std::string_view name, bool& target);

/// Adds --regulariser, --criterion, --candidates and --amplitude.
void add_regulariser_options(CLI::App& command, RegulariserChoice& choice);

/// Adds --solver.
CLI::Option* add_solver_option(CLI::App& command, std::optional<gp::Solver>& solver);

/// What the command line says about a fit; the rest is known later, from data.
[[nodiscard]] gp::FitRequest given_request(const CLI::App& command, const RegulariserChoice& choice,
                                           Kernels kernels, std::optional<gp::Solver> solver);

/// Throws CLI::ValidationError for what is refused, with the option and what to do.
void check_fit_usage(const gp::FitRequest& request);

/// As --criterion says it.
[[nodiscard]] const char* criterion_name(gp::Criterion criterion);

/// What it measures, for people: "validation accuracy".
[[nodiscard]] const char* criterion_title(gp::Criterion criterion);

[[nodiscard]] bool higher_is_better(gp::Criterion criterion);

/// What the criterion measures of a regulariser; NaN where that is not known.
[[nodiscard]] double score_by(const gp::RegulariserScore& score, gp::Criterion criterion);

}  // namespace widelimit::cli
