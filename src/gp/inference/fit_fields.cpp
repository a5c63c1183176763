#include "widelimit/gp/fit_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "gp/inference/known_noise.hpp"
#include "widelimit/error.hpp"
#include "widelimit/fields/config_fields.hpp"
#include "widelimit/gp/fit.hpp"
#include "widelimit/gp/model.hpp"

namespace widelimit::gp {
namespace {

using V = FieldValues;

template <typename Value>
Value value_of(const Choices<Value>& words, const std::string& word) {
  for (const auto& [known, value] : words)
    if (known == word) return value;
  throw std::out_of_range(word);  // The row's values are these words.
}

std::string no_default() { return "none"; }

std::vector<FitField> rows() {
  const std::string grid = "19 from 1e-7 to 100, two a decade";
  using O = ModelOptions;
  using J = const nlohmann::json&;
  return {
      {"kind", "--kernel", "kind", "nngp|ntk", V::words({"bayesian", "trained"}), "bayesian",
       "Posterior of infinitely wide networks with the NNGP (bayesian, --kernel nngp), or networks after "
       "gradient flow with the NTK (trained, --kernel ntk)",
       [](O& o, J v) { o.kind = v == "trained" ? ModelKind::trained : ModelKind::bayesian; }},
      {"time", "--time", "time", "T1,T2,...",
       V::words_or({"inf"}, V::at_least(0)).list().said("number >= 0, or inf"), "inf",
       "Time of training of {kind=trained}, learning rate 1, loss half the sum of squares. Of several, a "
       "model is that "
       "of infinite time and keeps the others, at which it predicts too; gp always predicts at infinite time "
       "too",
       [](O& o, J v) {
         o.times.clear();
         for (const auto& time : v) o.times.push_back(time == "inf" ? infinite_time : time.get<double>());
         // One is that of the model.
         if (o.times.size() == 1) o.time = std::exchange(o.times, {}).front();
       }},
      {"regulariser", "--regulariser", "regulariser", "R", V::above(0), "chosen by {criterion}",
       "Noise variance relative to the mean diagonal of the kernel",
       [](O& o, J v) { o.noise = RelativeRegulariser(v.get<double>()); }},
      {"noise_variances", "--noise-variance", "noise_variance", "COLUMN", "numbers > 0, a row each",
       no_default(),
       "Known variances of the noise of the observations, in squared units of the targets, beside which the "
       "amplitude is learned; one number in place of an array holds for all rows, whose kernel then has "
       "these "
       "units too",
       nullptr},
      {"weights", "--weight", "weights", "COLUMN", "numbers > 0, a row each", "1 for all",
       "Weights of the rows: the noise variance of a row is that of the model over its weight", nullptr},
      {"groups", "--groups", "groups", "COLUMN", "texts or numbers, a row each", "each row by itself",
       "Groups of rows, such as those of a patient: what is chosen or calibrated by data left out leaves out "
       "all rows "
       "of a group together, as it does with rows of equal inputs without being told",
       nullptr},
      {"criterion", "--criterion", "criterion", "accuracy|mse|nlpd|evidence|loo", V::words(criterion_words()),
       "loo; with {solver=cg} mse",
       "What to choose by: accuracy, mse or nlpd (negative log predictive density) of the validation data, "
       "evidence (log marginal likelihood, of the NNGP), or loo (leave-one-out density; of classes the log "
       "loss of "
       "their calibrated probabilities), which take no validation data",
       [](O& o, J v) { o.criterion = value_of(criterion_words(), v.get<std::string>()); }},
      {"grid", "--candidates", "grid", "R1,R2,...", V::above(0).list(), grid, "Regularisers to choose from",
       [](O& o, J v) { o.grid = v.get<std::vector<double>>(); }},
      {"amplitude", "--amplitude", "amplitude", "A", V::above(0),
       "fitted to the training targets: by evidence for nngp, leave-one-out for ntk",
       "Factor on the kernels of standardised targets, 1 for networks as they are; it scales variances, not "
       "means",
       [](O& o, J v) { o.amplitude = v.get<double>(); }},
      {"targets_as_they_are", "--targets-as-they-are", "targets_as_they_are", "", V::boolean(), "false",
       "Fit numbers as they are; without it each output is centred and divided by its standard deviation "
       "over "
       "the training inputs, and predictions are put back",
       [](O& o, J v) { o.targets_as_they_are = v.get<bool>(); }},
      {"transform", "--target-transform", "target_transform", "none|log", V::words(transform_words()),
       "none; with the network auto by the density of targets left out",
       "Fit logarithms of the targets (log), which are positive then, as noise that is a share of them asks "
       "for; "
       "predictions, intervals and scores stay in the units of the targets",
       [](O& o, J v) { o.transform = value_of(transform_words(), v.get<std::string>()); }},
      {"solver", "--solver", "solver", "cholesky|cg|distributed", V::words(solver_words()),
       "cholesky; gp: by size and memory",
       "How systems with the Gram matrix are solved: factorized (cholesky), by conjugate gradients, which "
       "need "
       "no second copy, and on a device with a network without positions no matrix at all (cg; no evidence, "
       "leave-one-out and finite {time}), or factorized by all ranks of widelimit-mpi together (distributed, "
       "gp alone); docs/solvers.md",
       [](O& o, J v) { o.solver = value_of(solver_words(), v.get<std::string>()); }},
      {"residual", "--residual", "residual", "E", V::inside(0, 1), shown(1e-10),
       "Relative residual at which conjugate gradients stop",
       [](O& o, J v) { o.residual = v.get<double>(); }},
      {"refit", "--refit", "refit", "", V::boolean(), "false",
       "Fit on training and validation data together once the regulariser is chosen",
       [](O& o, J v) { o.refit = v.get<bool>(); }},
      {"relevance", "--relevance", "relevance", "", V::boolean(), "false",
       "Learn a scale for each channel (of a table: each column), with noise and variances of weights and "
       "biases, by the gradient of the evidence; kept if it predicts thirds of the training data better",
       [](O& o, J v) {
         if (v.get<bool>()) o.learning.how = InputLearning::relevance;
       }},
      {"learn_features", "--learn-features", "learn_features", "ROUNDS", V::integer(0, 100), "0",
       "Learn a linear map of the channels in so many rounds of kernel regression and average gradient outer "
       "products (recursive feature machines); kept if it predicts thirds of the training data better",
       [](O& o, J v) {
         o.learning.rounds = v.get<int>();
         if (o.learning.rounds > 0) o.learning.how = InputLearning::features;
       }},
      {"diagonal", "--diagonal", "diagonal", "", V::boolean(), "false",
       "With {learn_features}: a factor for each channel in place of a matrix",
       [](O& o, J v) { o.learning.full_matrix = !v.get<bool>(); }},
      {"flip", "--flip", "flip", "", V::boolean(), "false",
       "Average kernels over images and mirror images: two to four times the work",
       [](O& o, J v) { o.flip = v.get<bool>(); }},
      {"gram_folder", "--gram", "gram_folder", "DIR", V::filled_text(), no_default(),
       "Folder in which Gram matrices are kept: those that are there are read, others are computed",
       [](O& o, J v) { o.gram_folder = v.get<std::string>(); }},
      {"store_folder", "--store", "store", "DIR", V::filled_text(), no_default(),
       "Folder in which Gram matrices are computed into stores, tile by tile (train, validation-train and so "
       "on; of "
       "several networks a folder for each), so that a run that ended early is continued, and another one "
       "reads them: "
       "docs/scale.md",
       [](O& o, J v) { o.store_folder = v.get<std::string>(); }}};
}

/// What doors say where no field has the name.
std::string other_name(Door door, std::string_view name) {
  if (name == "validation")
    return door == Door::program  ? "--validation N or files of them"
           : door == Door::python ? "validation=(x, y)"
                                  : "validation data";
  return std::string(name);
}

std::string name_in(Door door, std::string_view name) {
  for (const FitField& field : fit_fields())
    if (field.name == name) {
      if (door == Door::program && *field.option != '\0') return field.option;
      return door == Door::python ? field.argument : field.name;
    }
  return other_name(door, name);
}

std::string value_in(Door door, std::string_view name, std::string_view value) {
  if (door == Door::cpp) return fmt::format("the {} {}", name, value);
  if (door == Door::python) return fmt::format("{}='{}'", name_in(door, name), value);
  if (name == "kind") value = value == "trained" ? "ntk" : "nngp";
  return fmt::format("{} {}", name_in(door, name), value);
}

/// A combination that is refused.
struct Rule {
  const char* field;
  std::function<bool(const FitRequest&)> applies;
  const char* reason;
};

bool iterates(const FitRequest& request) { return request.solver == Solver::conjugate_gradients; }

bool gives_criterion(const FitRequest& request, Criterion criterion) {
  return request.criterion == criterion;
}

/// Of fields that exclude each other, or mean nothing beside others.
std::vector<Rule> rules_of_choice() {
  using R = const FitRequest&;
  return {
      {"noise_variances", [](R r) { return r.knows_noise && r.gives_regulariser; },
       "the noise is known: leave out {regulariser}"},
      {"noise_variances", [](R r) { return r.gives_noise && r.gives_regulariser; },
       "expected it (absolute) or {regulariser} (relative), got both"},
      {"noise_variances", [](R r) { return r.knows_noise && r.gives_noise; },
       "known ones of the rows and one for all exclude each other: give one of both"},
      {"noise_variances", [](R r) { return r.knows_noise && r.criterion && !r.searches; },
       "the noise is known: leave out {criterion}"},
      {"noise_variances", [](R r) { return r.knows_noise && r.gives_candidates; },
       "the noise is known: leave out {grid}"},
      {"noise_variances", [](R r) { return r.knows_noise && r.refits; },
       "the noise is known: leave out {refit}"},
      {"weights", [](R r) { return r.weighs && r.knows_noise; }, "give them or {noise_variances}, not both"},
      {"transform", [](R r) { return r.logarithms && r.kind == TargetKind::classes; },
       "classes have no logarithms: leave it out"},
      {"transform", [](R r) { return r.logarithms && (r.knows_noise || r.gives_noise); },
       "{noise_variances} are in units of the targets, and say nothing of their logarithms: give one of "
       "both"},
      {"criterion", [](R r) { return r.gives_regulariser && r.criterion && !r.searches; },
       "there is nothing to choose with {regulariser}"},
      {"grid", [](R r) { return r.gives_regulariser && r.gives_candidates; },
       "there is nothing to choose with {regulariser}"},
      {"criterion", [](R r) { return r.trained && gives_criterion(r, Criterion::evidence); },
       "trained networks have no evidence: {kind=bayesian}, or another criterion"},
      {"criterion",
       [](R r) {
         return r.kind == TargetKind::numbers && r.chooses() && gives_criterion(r, Criterion::accuracy);
       },
       "accuracy counts classes that are right, and the targets are numbers: choose by loo (leave-one-out), "
       "evidence, mse or nlpd"},
      {"criterion",
       [](R r) { return r.has_validation == false && r.criterion && needs_validation(*r.criterion); },
       "it is measured on validation data, and there are none: give {validation}, or take loo or evidence"},
      {"refit", [](R r) { return r.has_validation == false && r.refits; },
       "it takes validation data, and there are none: give {validation}"},
      {"time", [](R r) { return r.gives_time && !r.trained; }, "gradient flow needs the NTK: {kind=trained}"},
      {"noise_variances", [](R r) { return r.knows_noise && r.trained; },
       "it is for Bayesian regression: {kind=bayesian}"},
      {"weights", [](R r) { return r.weighs && r.trained; },
       "they are for Bayesian regression: {kind=bayesian}"},
      {"weights", [](R r) { return r.weighs && r.refits; },
       "they are those of training data: leave out {refit}"},
  };
}

std::vector<Rule> rules_of_inputs() {
  using R = const FitRequest&;
  return {
      {"learn_features", [](R r) { return r.relevance && r.features; }, "give it or {relevance}, not both"},
      {"diagonal", [](R r) { return r.diagonal && !r.features; }, "it is for {learn_features} only"},
      {"relevance", [](R r) { return r.relevance && r.stores_matrices; },
       "it changes the inputs, whose kernels a store keeps: leave out {store_folder}"},
      {"learn_features", [](R r) { return r.features && r.stores_matrices; },
       "it changes the inputs, whose kernels a store keeps: leave out {store_folder}"},
      {"store_folder", [](R r) { return r.stores_matrices && r.keeps_matrices; },
       "it and {gram_folder} both keep the Gram matrices: give one of them"},
      {"store_folder", [](R r) { return r.stores_matrices && r.flips; },
       "it holds the kernels of networks, not averages over flips ({flip})"},
  };
}

std::vector<Rule> rules_of_solvers() {
  using R = const FitRequest&;
  return {
      {"residual", [](R r) { return r.gives_residual && (r.solver || r.is_model) && !iterates(r); },
       "it is for {solver=cg}"},
      {"solver", [](R r) { return iterates(r) && r.inputs && r.outputs && *r.outputs > *r.inputs; },
       "cg solves for no more outputs than there are training inputs: take {solver=cholesky}"},
      {"solver", [](R r) { return r.is_model && r.solver == Solver::distributed; },
       "a model keeps the factor of its matrix, which ranks share among them: take {solver=cholesky} or "
       "{solver=cg}, or predict with gp"},
      {"groups", [](R r) { return r.groups && iterates(r); },
       "cg leaves no rows out, and has no use for them: leave them out, or take {solver=cholesky}"},
      {"groups", [](R r) { return r.groups && r.solver == Solver::distributed; },
       "ranks leave rows out one by one, and know no groups: leave them out, or take {solver=cholesky}"},
      {"solver", [](R r) { return iterates(r) && r.gives_time; },
       "cg knows networks after training only, no {time}: leave it out, or take {solver=cholesky}"},
      {"solver", [](R r) { return iterates(r) && r.knows_noise && !r.has_amplitude; },
       "cg takes {amplitude} with {noise_variances}, as finding it takes factorizations: give one, or take "
       "{solver=cholesky}"},
      {"solver",
       [](R r) {
         return iterates(r) && r.chooses() && r.chosen_by() != Criterion::accuracy &&
                r.chosen_by() != Criterion::mean_squared_error;
       },
       "cg chooses regularisers by accuracy or mean squared error on validation data alone: choose by one of "
       "these, give {regulariser}, or take {solver=cholesky}"},
      {"solver", [](R r) { return iterates(r) && r.chooses() && r.has_validation == false; },
       "cg chooses the regulariser on validation data, and there are none: give {validation}, {regulariser}, "
       "or take {solver=cholesky}"},
  };
}

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = [] {
    std::vector<Rule> joined = rules_of_choice();
    for (auto more : {rules_of_inputs(), rules_of_solvers()})
      joined.insert(joined.end(), more.begin(), more.end());
    return joined;
  }();
  return all;
}

}  // namespace

const std::vector<FitField>& fit_fields() {
  static const std::vector<FitField> fields = rows();
  return fields;
}

const FitField& fit_field(std::string_view name) {
  for (const FitField& field : fit_fields())
    if (field.name == name) return field;
  throw std::out_of_range(fmt::format("no field of a fit is called {}", name));
}

const Choices<Criterion>& criterion_words() {
  static const Choices<Criterion> words{{"accuracy", Criterion::accuracy},
                                        {"mse", Criterion::mean_squared_error},
                                        {"nlpd", Criterion::negative_log_predictive_density},
                                        {"evidence", Criterion::evidence},
                                        {"loo", Criterion::leave_one_out}};
  return words;
}

const Choices<TargetTransform>& transform_words() {
  static const Choices<TargetTransform> words{{"none", TargetTransform::none}, {"log", TargetTransform::log}};
  return words;
}

const Choices<Solver>& solver_words() {
  static const Choices<Solver> words{{"cholesky", Solver::cholesky},
                                     {"cg", Solver::conjugate_gradients},
                                     {"distributed", Solver::distributed}};
  return words;
}

void set_fit_field(const FitField& field, const nlohmann::json& value, Door door, ModelOptions& options) {
  if (!field.values.hold(value))
    throw ArgumentError(fmt::format("{}: expected {}, got {}", name_in(door, field.name),
                                    field.values.expected(), value.dump()));
  field.set(options, value);
}

std::string in_words_of(Door door, std::string_view sentence) {
  std::string said;
  while (!sentence.empty()) {
    const std::size_t open = sentence.find('{'), close = sentence.find('}', open);
    said += sentence.substr(0, open);
    if (close == std::string_view::npos) return said;
    const std::string_view token = sentence.substr(open + 1, close - open - 1);
    const std::size_t equals = token.find('=');
    said += equals == std::string_view::npos
                ? name_in(door, token)
                : value_in(door, token.substr(0, equals), token.substr(equals + 1));
    sentence.remove_prefix(close + 1);
  }
  return said;
}

Criterion usual_criterion(Solver solver) {
  return solver == Solver::conjugate_gradients ? Criterion::mean_squared_error : Criterion::leave_one_out;
}

Criterion FitRequest::chosen_by() const {
  return criterion.value_or(usual_criterion(solver.value_or(Solver::cholesky)));
}

std::optional<FitRefusal> fit_refusal(const FitRequest& request, Door door) {
  for (const Rule& rule : rules())
    if (rule.applies(request)) return FitRefusal{name_in(door, rule.field), in_words_of(door, rule.reason)};
  return std::nullopt;
}

void require_fit(const FitRequest& request, Door door, std::string_view where) {
  if (const auto refusal = fit_refusal(request, door))
    throw ArgumentError(where.empty() ? refusal->text() : fmt::format("{}: {}", where, refusal->text()));
}

std::string fit_fields_page() {
  std::string page =
      "| `gp`, `fit` | `ModelOptions` | `Model.fit` | values | default | meaning "
      "|\n|---|---|---|---|---|---|\n";
  const auto code = [](const char* name) { return *name == '\0' ? "" : fmt::format("`{}`", name); };
  for (const FitField& field : fit_fields())
    page += fmt::format("| {} | {} | {} | {} | {} | {} |\n", code(field.option), code(field.name),
                        code(field.argument), field.values.text(),
                        in_words_of(Door::cpp, field.default_value), in_words_of(Door::cpp, field.meaning));
  return page;
}

// What is expected of the data.

namespace {

/// Variances are in the squared units of the targets: beyond these bounds they would be 0, or infinite.
void require_squares(const Vector<double>& deviations) {
  constexpr double least = 1e-150, most = 1e150;
  for (Index c = 0; c < deviations.size(); ++c)
    if (deviations(c) < least || deviations(c) > most)
      throw ArgumentError(fmt::format(
          "the training targets{} have a deviation of {:.6g}, whose square leaves the range of double: give "
          "them "
          "in other units, so that it is from {:g} to {:g}",
          deviations.size() > 1 ? fmt::format(" of output {} (from 0)", c) : "", deviations(c), least, most));
}

}  // namespace

void require_varying_targets(const Matrix<double>& targets, TargetKind kind, bool as_they_are,
                             const char* remedy) {
  if (kind == TargetKind::classes || as_they_are) {
    if (targets.isZero(0))
      throw ArgumentError(fmt::format(
          "the training targets are all 0, so that no amplitude of the kernels fits them; {}", remedy));
    return;
  }
  for (Index c = 0; c < targets.cols(); ++c)
    if (targets.col(c).minCoeff() == targets.col(c).maxCoeff())
      throw ArgumentError(fmt::format(
          "the training targets{} are all {}, so that no amplitude of the kernels fits them; {}",
          targets.cols() > 1 ? fmt::format(" of output {} (from 0)", c) : "", targets(0, c) + 0.0, remedy));
  require_squares(TargetScale::fit(targets).factors());
}

void require_rows(const Problem& problem, std::string_view where) {
  require_row_numbers({problem.noise_variances, problem.weights}, problem.targets.rows(),
                      problem.kind == TargetKind::classes, std::string(where).c_str());
}

FitRequest fit_request(const Problem& problem, const FitOptions& options, bool trained) {
  FitRequest request;
  request.trained = trained;
  request.gives_regulariser = options.noise && !options.is_in_units_of_targets();
  request.gives_noise = options.is_in_units_of_targets();
  request.knows_noise = problem.knows_noise();
  request.weighs = problem.weights.size() > 0;
  request.groups = problem.inputs && !problem.inputs->groups.empty();
  request.logarithms = options.transform == TargetTransform::log;
  request.has_amplitude = options.amplitude.has_value();
  request.kind = problem.kind;
  request.inputs = problem.targets.rows();
  request.outputs = problem.targets.cols();
  request.has_validation = problem.validation.has_value();
  return request;
}

}  // namespace widelimit::gp
