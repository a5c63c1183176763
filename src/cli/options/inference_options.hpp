#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "widelimit/gp/fit_fields.hpp"
#include "widelimit/gp/model.hpp"
#include "widelimit/gp/selection.hpp"
#include "widelimit/kernel/gram.hpp"

namespace CLI {
class App;
}

namespace widelimit::cli {

/// What a command was told of a fit, by options that are rows of the table of fitting.
struct FitChoice {
  gp::ModelOptions options;
  gp::FitRequest request;  ///< Of the command line; data and the solver are added where they are known.

  [[nodiscard]] std::optional<double> regulariser() const {
    if (options.noise) return std::get<gp::RelativeRegulariser>(*options.noise).value();
    return std::nullopt;
  }
  /// Times of training besides infinity, as gp has them.
  [[nodiscard]] std::vector<double> times() const {
    return options.time == gp::infinite_time ? options.times : std::vector<double>{options.time};
  }
  /// Whether the regulariser is chosen on validation data.
  [[nodiscard]] bool chooses_by_validation() const {
    return request.chooses() && gp::needs_validation(request.chosen_by());
  }
};

/// An option for each of these rows, with the row's help and range.
void add_fit_options(CLI::App& command, FitChoice& choice, const std::vector<std::string_view>& names);

/// Adds --solver, whose words may be in any case, for a Solver or an optional one; `text` says what it means.
template <typename Target>
void add_solver_option(CLI::App& command, Target& solver, const std::string& text);

/// What the help says of a row: "sentence [default]".
[[nodiscard]] std::string fit_help(const gp::FitField& field);

/// Fills the request from what the command line says, and the kind: the NNGP's, unless the NTK predicts alone. Throws
/// CLI::ValidationError for what is refused, with the option and what to do.
void check_fit_usage(const CLI::App& command, Kernels kernels, bool is_model, FitChoice& choice);

/// As --criterion says it.
[[nodiscard]] const char* criterion_name(gp::Criterion criterion);

/// What it measures, for people: "validation accuracy".
[[nodiscard]] const char* criterion_title(gp::Criterion criterion);

[[nodiscard]] bool higher_is_better(gp::Criterion criterion);

/// What the criterion measures of a regulariser; NaN where that is not known.
[[nodiscard]] double score_by(const gp::RegulariserScore& score, gp::Criterion criterion);

}  // namespace widelimit::cli
