#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "widelimit/gp/selection.hpp"
#include "widelimit/gp/solver_choice.hpp"

namespace CLI {
class App;
}

namespace widelimit::cli {

/// Adds --criterion: what regularisers and hyperparameters are chosen by.
void add_criterion_option(CLI::App& command, std::optional<gp::Criterion>& criterion,
                          const std::string& default_value);

/// Adds --solver; `text` says what it means.
void add_solver_option(CLI::App& command, std::optional<gp::Solver>& solver, const std::string& text);

/// Adds --residual, of conjugate gradients.
void add_residual_option(CLI::App& command, double& residual);

/// Adds --gram: a folder of Gram matrices.
void add_gram_option(CLI::App& command, std::filesystem::path& folder);

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
