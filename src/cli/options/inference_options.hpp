#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "widelimit/gp/fit.hpp"
#include "widelimit/gp/selection.hpp"
#include "widelimit/gp/solver_choice.hpp"

namespace CLI {
class App;
}

namespace widelimit::cli {

/// How a regulariser is found, and the amplitude beside it: the options that gp and fit have in common.
struct RegulariserChoice {
  std::optional<double> regulariser;
  std::optional<gp::Criterion> criterion;
  std::vector<double> candidates = gp::regulariser_grid();
  std::optional<double> amplitude;
};

/// Adds --regulariser, --criterion, --candidates and --amplitude.
void add_regulariser_options(CLI::App& command, RegulariserChoice& choice);

/// Throws CLI::ValidationError where nothing is left to choose, with --regulariser (unless `searches`, which then
/// compares networks by it) or --noise-variance, and for evidence of trained networks.
void check_regulariser_usage(const CLI::App& command, const RegulariserChoice& choice, bool searches,
                             bool has_trained);

/// How messages about conjugate gradients call the options.
inline constexpr gp::SolverWords solver_words{.time = "--time",
                                              .amplitude = "--amplitude",
                                              .noise = "--noise-variance",
                                              .regulariser = "--regulariser",
                                              .cholesky = "--solver cholesky"};

/// Adds --solver; `text` says what it means.
void add_solver_option(CLI::App& command, std::optional<gp::Solver>& solver, const std::string& text);

/// Adds --residual, of conjugate gradients.
void add_residual_option(CLI::App& command, double& residual);

/// Adds --gram: a folder of Gram matrices.
void add_gram_option(CLI::App& command, std::filesystem::path& folder);

/// Adds --refit.
void add_refit_option(CLI::App& command, bool& refit);

/// Adds --flip.
void add_flip_option(CLI::App& command, bool& flip);

/// Adds --targets-as-they-are.
void add_targets_option(CLI::App& command, bool& as_they_are);

/// As --criterion says it.
[[nodiscard]] const char* criterion_name(gp::Criterion criterion);

/// What it measures, for people: "validation accuracy".
[[nodiscard]] const char* criterion_title(gp::Criterion criterion);

[[nodiscard]] bool higher_is_better(gp::Criterion criterion);

/// What the criterion measures of a regulariser; NaN where that is not known.
[[nodiscard]] double score_by(const gp::RegulariserScore& score, gp::Criterion criterion);

}  // namespace widelimit::cli
