#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "widelimit/fields/field_values.hpp"
#include "widelimit/gp/selection.hpp"
#include "widelimit/gp/solver_choice.hpp"
#include "widelimit/gp/target_transform.hpp"
#include "widelimit/gp/targets.hpp"
#include "widelimit/index.hpp"

/// The table of what people can say about a fit. One row is an option of the program, a member of ModelOptions and an
/// argument of Python's Model.fit, with its range, its default and its line of help, docstring and page. A second table
/// has the combinations that are refused, each with its reason, which every door says in its own words.
namespace widelimit::gp {

struct ModelOptions;

/// Through which people come; each has names of its own for the same things.
enum class Door { program, cpp, python };

struct FitField {
  const char* name;         ///< Of ModelOptions, by which the other functions find the row.
  const char* option;       ///< Of the program; empty where it has none.
  const char* argument;     ///< Of Python's Model.fit; empty where it has none.
  const char* placeholder;  ///< What stands for a value in the program's help; empty for flags.
  FieldValues values;
  std::string default_value;  ///< In words, where it follows from others; empty for flags of the program.
  /// A sentence without its end. Others' names stand in braces: in_words_of().
  std::string meaning;
  /// Puts a value that `values` hold into options; null where arrays or columns are given.
  void (*set)(ModelOptions& options, const nlohmann::json& value);

  [[nodiscard]] bool is_flag() const { return *placeholder == '\0'; }
  [[nodiscard]] bool is_list() const { return std::string_view(placeholder).ends_with(",..."); }
};

/// In the order of help and pages.
[[nodiscard]] const std::vector<FitField>& fit_fields();

/// The row of this name. std::out_of_range for none.
[[nodiscard]] const FitField& fit_field(std::string_view name);

/// The sentence with "{amplitude}" as the door names it, "--amplitude" or "amplitude", and "{kind=trained}" as what its
/// users write: "--kernel ntk", "kind='trained'".
[[nodiscard]] std::string in_words_of(Door door, std::string_view sentence);

/// Puts the value of a row into options. ArgumentError "NAME: expected ..., got ...", in the door's words, for a value
/// that the row does not hold.
void set_fit_field(const FitField& field, const nlohmann::json& value, Door door, ModelOptions& options);

/// The words of a criterion: "loo", "evidence", "accuracy", "mse", "nlpd".
[[nodiscard]] const Choices<Criterion>& criterion_words();

/// The words of a transform of targets: "none", "log".
[[nodiscard]] const Choices<TargetTransform>& transform_words();

/// The words of a solver: "cholesky", "cg", "distributed".
[[nodiscard]] const Choices<Solver>& solver_words();

/// What regularisers are chosen by where nobody says it.
[[nodiscard]] Criterion usual_criterion(Solver solver);

/// What is asked for, as far as it is known yet: absent facts refuse nothing.
struct FitRequest {
  bool trained = false;   ///< Whether the NTK predicts, alone or beside the NNGP.
  bool is_model = false;  ///< Which is kept.
  bool gives_time = false;
  bool gives_regulariser = false;
  bool gives_noise = false;  ///< One variance for all, in the units of the targets.
  bool knows_noise = false;  ///< Of each row.
  bool weighs = false;
  bool groups = false;      ///< Of rows, which are left out together.
  bool logarithms = false;  ///< Are fitted in place of targets.
  bool gives_candidates = false;
  std::optional<Criterion> criterion = {};  ///< Absent: the usual one.
  bool has_amplitude = false;
  bool refits = false;
  bool searches = false;  ///< For a network, of which each is scored by the criterion.
  bool relevance = false;
  bool features = false;
  bool diagonal = false;
  bool flips = false;
  bool keeps_matrices = false;
  bool stores_matrices = false;
  std::optional<Solver> solver = {};
  bool gives_residual = false;
  std::optional<TargetKind> kind = {};
  std::optional<bool> has_validation = {};
  std::optional<Index> inputs = {};
  std::optional<Index> outputs = {};

  /// Whether a regulariser is chosen, also that of a network that is searched for.
  [[nodiscard]] bool chooses() const {
    return searches || (!gives_regulariser && !gives_noise && !knows_noise);
  }
  /// What it is chosen by.
  [[nodiscard]] Criterion chosen_by() const;
};

/// A request that cannot be met.
struct FitRefusal {
  std::string field;   ///< As the door names it.
  std::string reason;  ///< With what to do.

  /// "FIELD: REASON"
  [[nodiscard]] std::string text() const { return field + ": " + reason; }
};

/// The first that applies.
[[nodiscard]] std::optional<FitRefusal> fit_refusal(const FitRequest& request, Door door);

/// The same as an ArgumentError, preceded by `where` and a colon unless it is empty.
void require_fit(const FitRequest& request, Door door, std::string_view where = "");

/// The table of the page: a row a field, with the names of all doors, as Markdown.
[[nodiscard]] std::string fit_fields_page();

}  // namespace widelimit::gp
