#include "widelimit/gp/automatic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <variant>

#include "widelimit/error.hpp"
#include "widelimit/gp/distinct_inputs.hpp"
#include "widelimit/gp/gram_source.hpp"
#include "widelimit/gp/leave_one_out.hpp"
#include "widelimit/gp/median_distance.hpp"
#include "widelimit/gp/model.hpp"
#include "widelimit/gp/observation_law.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::gp {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* automatic_place = "choose_network";
/// With fewer the best of many scores tells of chance: intervals of 95 % of 6 to 10 rows held 64 % of observations.
constexpr Index fewest_rows = 30;

/// Eighteen choices on so many cost less than ten fits of 2,000 rows.
constexpr Index most_rows = 600;

struct Candidate {
  std::string name;
  Json layers;
};

Json dense_layer(double weight_variance, double bias_variance) {
  return {{"layer", "dense"}, {"weight_variance", weight_variance}, {"bias_variance", bias_variance}};
}

/// The usual variances; the first layer has those of inputs of mean square 1.
Candidate relu_candidate(int depth, double mean_square) {
  constexpr double bias = 0.01;
  Json layers = Json::array();
  for (int i = 0; i < depth; ++i) {
    layers.push_back(dense_layer(i == 0 ? 2 / mean_square : 2, bias));
    layers.push_back({{"layer", "relu"}});
  }
  layers.push_back(dense_layer(1, bias));
  return {fmt::format("{} ReLU layer{}", depth, depth == 1 ? "" : "s"), std::move(layers)};
}

/// A kernel of distances in units of the median distance, whatever the units of the inputs.
Candidate distance_candidate(std::string name, double median, Json kernel) {
  return {std::move(name),
          Json::array({dense_layer(1 / (median * median), 0), std::move(kernel), dense_layer(1, 0)})};
}

/// The networks for inputs of this mean square around their means and this median distance.
std::vector<Candidate> candidates_for(double mean_square, double median) {
  std::vector<Candidate> list{{"linear", Json::array({dense_layer(1 / mean_square, 0.01)})},
                              relu_candidate(1, mean_square),
                              relu_candidate(3, mean_square)};
  for (const double length : {1.0, 2.0, 4.0})
    list.push_back(distance_candidate(fmt::format("rbf, length {}", length), median,
                                      {{"layer", "rbf"}, {"gamma", 1 / (2 * length * length)}}));
  for (const double length : {1.0, 2.0})
    list.push_back(distance_candidate(fmt::format("matern 5/2, length {}", length), median,
                                      {{"layer", "matern"}, {"smoothness", 2.5}, {"length", length}}));
  list.push_back(distance_candidate("laplace, length 2", median,
                                    {{"layer", "matern"}, {"smoothness", 0.5}, {"length", 2.0}}));
  return list;
}

Network network_of(const Candidate& candidate) {
  return parse_network(Json{{"widelimit", 1}, {"name", candidate.name}, {"layers", candidate.layers}}.dump());
}

/// The mean over the channels of the variances of their numbers.
double mean_square_of(const Inputs<double>& x) {
  const auto channels = x.channels();
  Vector<double> mean = Vector<double>::Zero(channels), square = mean;
  const auto row = [&](Index i) { return Eigen::Map<const Vector<double>>(x[i].data(), channels); };
  for (Index i = 0; i < x.size(); ++i) mean += row(i) / static_cast<double>(x.size());
  for (Index i = 0; i < x.size(); ++i) square += (row(i) - mean).cwiseAbs2() / static_cast<double>(x.size());
  return square.mean();
}

/// The same problem of some rows. Known noise variances say how precise rows are, no more.
Problem problem_of_rows(const Problem& problem, const std::vector<Index>& rows, const Inputs<double>& seen) {
  Problem chosen{.kind = problem.kind, .targets = problem.targets(rows, Eigen::all)};
  if (problem.weights.size() > 0) chosen.weights = problem.weights(rows);
  if (problem.knows_noise()) {
    const Vector<double> noise = problem.noise_variances(rows);
    chosen.weights = noise.mean() * noise.cwiseInverse();
  }
  std::vector<Index> groups;
  if (problem.inputs)
    for (const Index row : rows) {
      const Index input = problem.inputs->of_row[static_cast<std::size_t>(row)];
      groups.push_back(
          problem.inputs->groups.empty() ? input : problem.inputs->groups[static_cast<std::size_t>(input)]);
    }
  chosen.inputs = distinct_inputs(seen, groups);
  return chosen;
}

/// What may be fitted in place of the targets.
std::vector<TargetTransform> transforms_of(const Problem& problem, const AutomaticOptions& options) {
  if (options.transform) return {*options.transform};
  // Noise that is known is that of the targets, not of their logarithms.
  const bool only_as_they_are = problem.kind == TargetKind::classes || options.targets_as_they_are ||
                                problem.knows_noise() || !(problem.targets.array() > 0).all() ||
                                (problem.validation && !(problem.validation->array() > 0).all());
  if (only_as_they_are) return {TargetTransform::none};
  return {TargetTransform::none, TargetTransform::log};
}

/// The targets with each transform, beside each other: one decomposition serves all.
Matrix<double> transformed_targets(const Matrix<double>& targets,
                                   const std::vector<TargetTransform>& transforms) {
  const auto count = static_cast<Index>(transforms.size());
  Matrix<double> all(targets.rows(), targets.cols() * count);
  for (Index t = 0; t < count; ++t)
    all.middleCols(t * targets.cols(), targets.cols()) =
        fitted_targets(targets, {.transform = transforms[static_cast<std::size_t>(t)]});
  return all;
}

/// Targets of one output that are left out.
struct LeftOutOutput {
  Vector<double> negative_log_densities;
  double largest_deviation;  ///< Of an observation from its prediction, by the law.
};

/// Whatever the amplitude of the targets is, the law has the scale that fits them.
LeftOutOutput left_out_output(const Vector<double>& residuals, const Vector<double>& variances,
                              double factor) {
  const Vector<double> distances = residuals.array() / variances.array().sqrt();
  if (!distances.allFinite() || distances.isZero(0))
    throw NumericalError(
        fmt::format("{}: targets left out have no variance, or no distance", automatic_place));
  const ObservationLaw law = ObservationLaw::of_left_out(distances);
  Vector<double> densities(distances.size());
  for (Index i = 0; i < distances.size(); ++i)
    densities(i) = std::log(factor) + 0.5 * std::log(variances(i)) - law.log_density(distances(i));
  return {std::move(densities), law.scale * factor * std::sqrt(variances.maxCoeff())};
}

double class_score(const Selection& selection) {
  // Classes are chosen by the log loss itself.
  double lowest = std::numeric_limits<double>::quiet_NaN();
  for (const RegulariserScore& score : selection.scores)
    if (!(score.leave_one_out >= lowest) && !std::isnan(score.leave_one_out)) lowest = score.leave_one_out;
  return lowest;
}

/// Negative log densities of the targets of each input that is left out, summed over the outputs: of each transform.
std::vector<Vector<double>> number_scores(const std::vector<Selection>& selections, const Fitter& fitter,
                                          const std::vector<TargetTransform>& transforms) {
  const auto count = static_cast<Index>(transforms.size());
  const Matrix<double>& targets = fitter.input_targets();
  const std::vector<Index> inputs =
      representative_sets(targets.rows(), fitter.problem().inputs->groups).inputs;
  std::vector<Vector<double>> scores(transforms.size(),
                                     Vector<double>::Zero(static_cast<Index>(inputs.size())));
  Index column = 0;
  for (const Selection& selection : selections)
    for (Index k = 0; k < selection.others.residuals.cols(); ++k, ++column) {
      const auto transform = static_cast<std::size_t>(column / (fitter.scale().outputs() / count));
      const LeftOutOutput output = left_out_output(
          selection.others.residuals.col(k), selection.others.variances, fitter.scale().factors()(column));
      scores[transform] += output.negative_log_densities;
      if (transforms[transform] != TargetTransform::log) continue;
      // The density of a target is that of its logarithm over the target.
      scores[transform] += targets.col(column)(inputs);
      // Means, which grow with exp(deviation^2 / 2), would say nothing.
      constexpr double most = 5;
      if (output.largest_deviation > most)
        scores[transform].setConstant(std::numeric_limits<double>::quiet_NaN());
    }
  return scores;
}

/// The scores of a network for inputs that went through their map, of each transform of the targets, which
/// transformed_targets() put beside each other: of each input, or the one of classes.
std::vector<Vector<double>> left_out_scores_of(const Network& network, const Inputs<double>& x,
                                               const Problem& problem, const AutomaticOptions& options,
                                               const std::vector<TargetTransform>& transforms,
                                               const RunControl& run) {
  GramOptions gram_options;
  gram_options.kernels = options.kernel == Kernels::nngp ? Kernels::nngp : Kernels::both;
  gram_options.threads = run.threads;
  gram_options.stop = run.stop;
  GramSources grams;
  grams.train = gram_in_memory(gram(network, x, gram_options));
  FitOptions fit;
  fit.candidates = options.candidates;
  fit.targets_as_they_are = options.targets_as_they_are;
  fit.threads = run.threads;
  fit.stop = run.stop;
  Fitter fitter(problem, std::move(fit), std::move(grams), direct_solver);
  const auto selections = fitter.select(options.kernel == Kernels::nngp ? "nngp" : "ntk");
  if (problem.kind == TargetKind::classes)
    return {Vector<double>::Constant(1, class_score(selections.front()))};
  return number_scores(selections, fitter, transforms);
}

/// Inputs through one of the maps, and the networks for them.
struct Treatment {
  std::string name;
  FeatureMap map;
  Inputs<double> x;
  std::vector<Candidate> candidates;
};

std::optional<Treatment> treatment(std::string name, const FeatureMap& map, const Inputs<double>& x) {
  Inputs<double> mapped = map.apply(x);
  const std::optional<double> median = median_distance(mapped);
  const double mean_square = mean_square_of(mapped);
  if (!median || !(mean_square > 0) || !std::isfinite(mean_square)) return std::nullopt;
  return Treatment{std::move(name), map, std::move(mapped), candidates_for(mean_square, *median)};
}

std::vector<Treatment> treatments_of(const Inputs<double>& x) {
  std::vector<Treatment> list;
  const FeatureMap clipped = FeatureMap::clipped(x), scores = FeatureMap::normal_scores(x);
  if (auto found = treatment("clipped", clipped, x)) list.push_back(std::move(*found));
  // Channels of two values each have no other scores.
  const Index count = scores.knots().rows() / 2;
  if (count > 2 && scores.knots().topRows(count) != scores.knots().bottomRows(count))
    if (auto found = treatment("normal scores", scores, x)) list.push_back(std::move(*found));
  return list;
}

/// A network that was tried, with the score of each input.
struct Trial {
  AutomaticTrial told;
  const Treatment* treatment;
  const Candidate* candidate;
  Vector<double> scores = {};
};

/// With each transform of the targets.
std::vector<Trial> trials_of(const Treatment& treatment, const Candidate& candidate, const Problem& problem,
                             const AutomaticOptions& options, const std::vector<TargetTransform>& transforms,
                             const RunControl& run) {
  std::vector<Trial> trials;
  for (const TargetTransform transform : transforms)
    trials.push_back({{.network = candidate.name, .inputs = treatment.name, .targets = transform},
                      &treatment,
                      &candidate});
  try {
    auto scores = left_out_scores_of(network_of(candidate), treatment.x, problem, options, transforms, run);
    for (std::size_t t = 0; t < trials.size(); ++t) {
      trials[t].told.score = scores[t].mean();
      if (std::isnan(trials[t].told.score)) trials[t].told.unsolved = "its predictions are not finite";
      trials[t].scores = std::move(scores[t]);
    }
  } catch (const NumericalError& error) {
    for (Trial& trial : trials) trial.told.unsolved = error.what();
  }
  return trials;
}

std::optional<std::size_t> lowest_of(const std::vector<Trial>& trials, TargetTransform transform) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < trials.size(); ++i)
    if (trials[i].told.targets == transform && std::isfinite(trials[i].told.score) &&
        (!best || trials[i].told.score < trials[*best].told.score))
      best = i;
  return best;
}

/// The place of the lowest score. Logarithms, whose means are less exact, have to win by a standard error.
std::size_t best_of(const std::vector<Trial>& trials) {
  const auto plain = lowest_of(trials, TargetTransform::none),
             logarithms = lowest_of(trials, TargetTransform::log);
  if (!plain && !logarithms)
    throw NumericalError(
        fmt::format("{}: no network can be solved for: {}", automatic_place, trials.back().told.unsolved));
  if (!plain || !logarithms) return plain ? *plain : *logarithms;
  const Vector<double> gains = trials[*plain].scores - trials[*logarithms].scores;
  const double count = static_cast<double>(gains.size()), mean = gains.mean(),
               error = std::sqrt((gains.array() - mean).square().sum() / (count * (count - 1)));
  return mean > error ? *logarithms : *plain;
}

template <typename Scalar>
void require_automatic(const Inputs<Scalar>& x, const Problem& problem) {
  if (!takes_automatic_network(x))
    throw ArgumentError(fmt::format("{}: expected vectors [n, channels]; give a network", automatic_place));
  if (problem.targets.rows() != x.size())
    throw ArgumentError(fmt::format("{}: expected targets of {} inputs, got {}", automatic_place, x.size(),
                                    problem.targets.rows()));
}

/// Why nothing can be chosen; empty where it can.
std::string against_choice(const Problem& problem, const std::vector<Treatment>& treatments) {
  if (problem.targets.rows() < fewest_rows)
    return fmt::format("there are fewer than {} targets to leave out", fewest_rows);
  if (treatments.empty()) return "no two inputs differ";
  for (Index c = 0; c < problem.targets.cols(); ++c)
    if ((problem.targets.col(c).array() == problem.targets(0, c)).all()) return "all targets are equal";
  return "";
}

/// Three layers of ReLUs, which the estimators had before there was a choice.
AutomaticNetwork without_choice(Index rows, const AutomaticOptions& options, std::string why) {
  Candidate usual = relu_candidate(3, 1);
  Network network = network_of(usual);
  return {.network = std::move(network),
          .transform = options.transform.value_or(TargetTransform::none),
          .trials = {{.network = std::move(usual.name), .inputs = "as they are", .unsolved = std::move(why)}},
          .rows = rows};
}

}  // namespace

AutomaticOptions automatic_options(const ModelOptions& options) {
  AutomaticOptions choice{.kernel = options.kind == ModelKind::bayesian ? Kernels::nngp : Kernels::ntk,
                          .candidates = options.grid,
                          .targets_as_they_are = options.targets_as_they_are,
                          .transform = options.transform};
  if (options.noise) {
    if (const auto* given = std::get_if<RelativeRegulariser>(&*options.noise))
      choice.candidates = {given->value()};
    else
      choice.transform = TargetTransform::none;  // The noise is in the units of the targets.
  }
  return choice;
}

template <typename Scalar>
bool takes_automatic_network(const Inputs<Scalar>& x) {
  return !x.is_ragged() && !x.is_masked() && x.graphs().empty() && x.axes() == 0;
}

template <typename Scalar>
AutomaticNetwork choose_network(const Inputs<Scalar>& x, const Problem& problem,
                                const AutomaticOptions& options, const RunControl& run) {
  require_automatic(x, problem);
  const std::vector<Index> rows = evenly_spaced_inputs(x.size(), most_rows);
  const Inputs<double> seen = inputs_of_rows<double>(x, rows);
  Problem chosen = problem_of_rows(problem, rows, seen);
  const std::vector<Treatment> treatments = treatments_of(seen);
  if (std::string why = against_choice(chosen, treatments); !why.empty())
    return without_choice(seen.size(), options, std::move(why));
  require_varying_targets(problem.targets, problem.kind, options.targets_as_they_are, "give one");
  const std::vector<TargetTransform> transforms = transforms_of(problem, options);
  chosen.targets = transformed_targets(chosen.targets, transforms);
  std::ptrdiff_t total = 0, done = 0;
  for (const Treatment& one : treatments) total += static_cast<std::ptrdiff_t>(one.candidates.size());
  std::vector<Trial> trials;
  for (const Treatment& one : treatments)
    for (const Candidate& candidate : one.candidates) {
      for (Trial& trial : trials_of(one, candidate, chosen, options, transforms, run))
        trials.push_back(std::move(trial));
      if (run.progress) run.progress(++done, total);
    }
  const std::size_t best = best_of(trials);
  AutomaticNetwork found{.network = network_of(*trials[best].candidate),
                         .map = trials[best].treatment->map,
                         .transform = trials[best].told.targets,
                         .trials = {},
                         .chosen = best,
                         .rows = static_cast<Index>(rows.size())};
  for (Trial& trial : trials) found.trials.push_back(std::move(trial.told));
  return found;
}

std::string automatic_cost(Index n) {
  const auto rows = std::min(n, most_rows);
  return fmt::format(
      "network auto: nine networks, for inputs cut to their ranges and for their normal scores, are compared "
      "on {}"
      "{} training rows: at most 18 Gram matrices of these rows",
      static_cast<Index>(rows) < n ? "" : "all ", rows);
}

namespace {

/// "rbf, length 2 on inputs clipped"
std::string name_of(const AutomaticTrial& trial, const char* on) {
  return fmt::format("{}{}{}{}", trial.network, on, trial.inputs,
                     trial.targets == TargetTransform::log ? ", targets as logarithms" : "");
}

}  // namespace

std::string automatic_text(const AutomaticNetwork& found, TargetKind kind) {
  std::vector<const AutomaticTrial*> order;
  for (const AutomaticTrial& trial : found.trials)
    if (std::isfinite(trial.score)) order.push_back(&trial);
  std::ranges::stable_sort(order, [](const auto* a, const auto* b) { return a->score < b->score; });
  const AutomaticTrial& best = found.trials[found.chosen];
  if (order.empty())
    return fmt::format("network auto: {}, as nothing can be chosen: {}", best.network, best.unsolved);
  std::string text =
      fmt::format("network auto: {} ({:.4f}), chosen among {} by the {} of {} training targets left out",
                  name_of(best, " on inputs "), best.score, found.trials.size(),
                  kind == TargetKind::numbers ? "negative log density" : "log loss", found.rows);
  constexpr std::size_t others = 3;
  for (std::size_t i = 1; i < std::min(order.size(), others + 1); ++i)
    text += fmt::format("{} {} ({:.4f})", i == 1 ? "; next" : ",", name_of(*order[i], ", "), order[i]->score);
  return text;
}

template bool takes_automatic_network(const Inputs<float>&);
template bool takes_automatic_network(const Inputs<double>&);
template AutomaticNetwork choose_network(const Inputs<float>&, const Problem&, const AutomaticOptions&,
                                         const RunControl&);
template AutomaticNetwork choose_network(const Inputs<double>&, const Problem&, const AutomaticOptions&,
                                         const RunControl&);

}  // namespace widelimit::gp
