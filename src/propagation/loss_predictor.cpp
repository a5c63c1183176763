#include "widelimit/propagation/loss_predictor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <nlopt.hpp>
#include <numeric>
#include <string>

#include "propagation/arguments.hpp"
#include "widelimit/data/csv.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/random_stream.hpp"
#include "widelimit/numerics/statistics.hpp"

namespace widelimit::propagation {

namespace {

using Point = std::array<double, 3>;  // weight_a, weight_g, bias

LossPredictor predictor_of(const Point& point, double ceiling) {
  // The search may make weights negative; their sizes count.
  return {std::abs(point[0]), std::abs(point[1]), point[2], ceiling};
}

/// What is fitted.
struct FitTask {
  std::span<const TrainingOutcome> outcomes;
  double ceiling;
};

double squared_error(const FitTask& task, const Point& point) {
  const LossPredictor predictor = predictor_of(point, task.ceiling);
  double sum = 0;
  for (const TrainingOutcome& outcome : task.outcomes) {
    const double error = predictor(outcome.lambda_a, outcome.lambda_g) - outcome.loss;
    sum += error * error;
  }
  return sum;
}

/// The objective in the form in which NLopt calls it; `task` is a FitTask.
double objective(const std::vector<double>& at, std::vector<double>&, void* task) {
  return squared_error(*static_cast<const FitTask*>(task), {at[0], at[1], at[2]});
}

/// The point that a simplex search (Nelder and Mead) finds from `start`, or `best` if that is better. A second search
/// starts where the first ended, with a new simplex, because one can collapse onto a ridge.
Point better_point(FitTask task, const Point& best, const Point& start, const Point& spread) {
  constexpr int most_evaluations = 4000;
  constexpr double settled = 1e-15;
  std::vector<double> at(start.begin(), start.end());
  for (int search = 0; search < 2; ++search) {
    nlopt::opt optimiser(nlopt::LN_NELDERMEAD, static_cast<unsigned>(at.size()));
    optimiser.set_min_objective(objective, &task);
    optimiser.set_initial_step({spread[0], spread[1], spread[2]});
    optimiser.set_ftol_rel(settled);
    optimiser.set_maxeval(most_evaluations);
    double error = 0;
    try {
      optimiser.optimize(at, error);
    } catch (const nlopt::roundoff_limited&) {
      // The best point so far is in `at`.
    }
  }
  const Point end{at[0], at[1], at[2]};
  return squared_error(task, end) < squared_error(task, best) ? end : best;
}

/// Ranks from 0; equal values share the mean of theirs.
std::vector<double> ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> result(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i) result[order[i]] = static_cast<double>(begin + end - 1) / 2;
    begin = end;
  }
  return result;
}

void require_outcomes(std::span<const TrainingOutcome> outcomes) {
  constexpr std::size_t fewest = 4;
  if (outcomes.size() < fewest)
    throw ArgumentError(
        fmt::format("fit_loss_predictor: outcomes must be at least {}, got {}", fewest, outcomes.size()));
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    if (!std::isfinite(outcomes[i].lambda_a) || !std::isfinite(outcomes[i].lambda_g) ||
        !std::isfinite(outcomes[i].loss))
      throw ArgumentError(fmt::format(
          "fit_loss_predictor: outcomes must be finite, got lambda_a = {}, lambda_g = {}, loss = {} at {}",
          outcomes[i].lambda_a, outcomes[i].lambda_g, outcomes[i].loss, i));
}

std::size_t column_of(const std::string& file, const data::CsvTable& table, const char* name) {
  const auto found = std::find(table.columns.begin(), table.columns.end(), name);
  if (found == table.columns.end())
    throw DataError(
        fmt::format("{}: expected a column '{}', found {}", file, name, fmt::join(table.columns, ", ")));
  return static_cast<std::size_t>(found - table.columns.begin());
}

double number_at(const std::string& file, const data::CsvTable& table, std::size_t row, std::size_t column) {
  const std::string& field = table.rows[row][column];
  const auto number = data::number_in_field(field);
  if (!number)
    throw DataError(fmt::format("{}: line {}: column '{}': expected a number, found '{}'", file,
                                table.lines[row], table.columns[column], field));
  return *number;
}

}  // namespace

double LossPredictor::operator()(double lambda_a, double lambda_g) const {
  return std::min(bias + std::max(weight_a * std::abs(lambda_a), weight_g * std::abs(lambda_g)), ceiling);
}

double rank_correlation(std::span<const double> first, std::span<const double> second) {
  if (first.size() != second.size() || first.size() < 2)
    throw ArgumentError(
        fmt::format("rank_correlation: expected two samples of one size of at least 2, got {} and {}",
                    first.size(), second.size()));
  const auto centred = [](const std::vector<double>& values) {
    const auto count = static_cast<Eigen::Index>(values.size());
    return Eigen::ArrayXd(Eigen::Map<const Eigen::ArrayXd>(values.data(), count) -
                          // Ranks of n values have the mean (n - 1) / 2, ties or not.
                          static_cast<double>(count - 1) / 2);
  };
  const Eigen::ArrayXd a = centred(ranks(first)), b = centred(ranks(second));
  const double squares = a.square().sum() * b.square().sum();
  return squares > 0 ? (a * b).sum() / std::sqrt(squares) : 0;
}

PredictorFit fit_loss_predictor(std::span<const TrainingOutcome> outcomes, double ceiling) {
  require_outcomes(outcomes);
  double lowest = HUGE_VAL, highest = -HUGE_VAL, mean = 0, scale_a = 1e-12, scale_g = 1e-12;
  for (const TrainingOutcome& outcome : outcomes) {
    lowest = std::min(lowest, outcome.loss);
    highest = std::max(highest, outcome.loss);
    mean += outcome.loss / static_cast<double>(outcomes.size());
    scale_a = std::max(scale_a, std::abs(outcome.lambda_a));
    scale_g = std::max(scale_g, std::abs(outcome.lambda_g));
  }
  if (!(highest > lowest))
    throw ArgumentError(fmt::format("fit_loss_predictor: losses must differ, all are {}", lowest));
  const double rise = highest - lowest;
  const Point spread{0.5 * rise / scale_a, 0.5 * rise / scale_g, 0.2 * rise};
  Point best{rise / scale_a, rise / scale_g, lowest};
  // The error has several valleys: one for each choice of the exponent that decides at a point, and for the ceiling.
  for (const double a : {0.0, 0.3, 1.0, 3.0, 10.0})
    for (const double g : {0.0, 0.3, 1.0, 3.0, 10.0})
      for (const double bias : {lowest, mean})
        best =
            better_point({outcomes, ceiling}, best, {a * rise / scale_a, g * rise / scale_g, bias}, spread);
  const double error = squared_error({outcomes, ceiling}, best);
  PredictorFit fit;
  fit.predictor = predictor_of(best, ceiling);
  double variance = 0;
  std::vector<double> predicted, actual;
  for (const TrainingOutcome& outcome : outcomes) {
    predicted.push_back(fit.predictor(outcome.lambda_a, outcome.lambda_g));
    actual.push_back(outcome.loss);
    variance += (outcome.loss - mean) * (outcome.loss - mean);
  }
  fit.root_mean_square_error = std::sqrt(error / static_cast<double>(outcomes.size()));
  fit.explained_variance = 1 - error / variance;
  fit.rank_correlation = rank_correlation(predicted, actual);
  return fit;
}

LossPredictor bootstrap_errors(std::span<const TrainingOutcome> outcomes, const PredictorFit& fit,
                               Index draws, std::uint64_t seed) {
  constexpr const char* where = "bootstrap_errors";
  require_outcomes(outcomes);
  require_at_least(where, "draws", draws, 2);
  const LossPredictor& found = fit.predictor;
  const Point start{found.weight_a, found.weight_g, found.bias};
  // The simplex is kept wide enough for a weight of 0, which its absolute value would hold there.
  const Point spread{0.3 * found.weight_a + 0.1, 0.3 * found.weight_g + 0.1,
                     0.1 * std::abs(found.bias) + 0.1};
  numerics::RandomStream stream(seed);
  std::array<std::vector<double>, 3> fitted;
  std::vector<TrainingOutcome> drawn(outcomes.size());
  for (Index draw = 0; draw < draws; ++draw) {
    for (TrainingOutcome& outcome : drawn) {
      const auto i = static_cast<std::size_t>(stream.uniform() * static_cast<double>(outcomes.size()));
      outcome = outcomes[std::min(i, outcomes.size() - 1)];
    }
    const Point point = better_point({drawn, found.ceiling}, start, start, spread);
    for (std::size_t k = 0; k < point.size(); ++k) fitted[k].push_back(k < 2 ? std::abs(point[k]) : point[k]);
  }
  const auto scatter = [&](std::size_t k) { return std::sqrt(numerics::variance(fitted[k]).value); };
  return {scatter(0), scatter(1), scatter(2), 0};
}

std::vector<TrainingOutcome> read_training_outcomes(const std::filesystem::path& file) {
  const data::CsvTable table = data::read_csv(file, {.comments = data::CsvComments::hash_lines});
  const std::string name = file.string();
  const std::size_t lambda_a = column_of(name, table, "lambda_a"),
                    lambda_g = column_of(name, table, "lambda_g"), loss = column_of(name, table, "loss");
  std::vector<TrainingOutcome> outcomes;
  for (std::size_t row = 0; row < table.rows.size(); ++row)
    outcomes.push_back({number_at(name, table, row, lambda_a), number_at(name, table, row, lambda_g),
                        number_at(name, table, row, loss)});
  return outcomes;
}

}  // namespace widelimit::propagation
