#include "gp/inference/known_noise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/tools/minima.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "gp/inference/observations.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/known_noise.hpp"
#include "widelimit/gp/metrics.hpp"
#include "widelimit/gp/not_positive_definite.hpp"
#include "widelimit/gp/regression.hpp"

namespace widelimit::gp {

Vector<double> row_weights(const RowNumbers& numbers) {
  if (numbers.noise_variances.size() > 0)
    return (numbers.noise_variances.mean() / numbers.noise_variances.array()).matrix();
  if ((numbers.weights.array() == 1).all()) return {};
  return numbers.weights;
}

void require_row_numbers(const RowNumbers& numbers, Index rows, bool classes, const char* where) {
  const auto require = [&](const Vector<double>& given, const char* name) {
    if (given.size() == 0) return;
    if (given.size() != rows)
      throw ArgumentError(fmt::format("{}: expected {} for each of {} training inputs, got {}", where, name,
                                      rows, given.size()));
    if (!given.allFinite() || !(given.array() > 0).all())
      throw ArgumentError(fmt::format("{}: {} must be positive and finite, got {:.6g}", where, name,
                                      given.allFinite() ? given.minCoeff() : NAN));
  };
  require(numbers.noise_variances, "noise variances");
  require(numbers.weights, "weights");
  if (numbers.noise_variances.size() == 0) return;
  if (classes) throw ArgumentError(fmt::format("{}: noise variances are for numbers, not classes", where));
  if (numbers.weights.size() > 0)
    throw ArgumentError(fmt::format("{}: expected noise variances or weights, got both", where));
}

Observations::Observations(const Problem& problem, const TargetScale& scale)
    : problem_{problem}, weights_{row_weights({problem.noise_variances, problem.weights})} {
  const Index n = problem.targets.rows();
  rows_of_input_.resize(problem.inputs ? problem.inputs->rows.size() : static_cast<std::size_t>(n));
  for (Index row = 0; row < n; ++row)
    rows_of_input_[static_cast<std::size_t>(
                       problem.inputs ? problem.inputs->of_row[static_cast<std::size_t>(row)] : row)]
        .push_back(row);
  if (repeats()) {
    sums_ = Vector<double>::Zero(inputs());
    means_ = Matrix<double>::Zero(inputs(), problem.targets.cols());
    for (Index input = 0; input < inputs(); ++input) {
      for (const Index row : rows_of_input_[static_cast<std::size_t>(input)]) {
        const double weight = weights_.size() > 0 ? weights_(row) : 1;
        sums_(input) += weight;
        means_.row(input) += weight * problem.targets.row(row);
      }
      means_.row(input) /= sums_(input);
      // Rounding would move the mean of equal targets.
      const auto& rows = rows_of_input_[static_cast<std::size_t>(input)];
      const auto first = problem.targets.row(rows.front());
      if (std::ranges::all_of(rows, [&](Index row) { return problem.targets.row(row) == first; }))
        means_.row(input) = first;
    }
    factors_ = sums_.cwiseSqrt();
    if ((factors_.array() == 1).all()) factors_ = Vector<double>();
  } else {
    sums_ = weights_;
    factors_ = weights_.cwiseSqrt();
    means_ = problem.targets;
  }
  targets_ = scale.standardised(problem.targets);
  standard_means_ = scale.standardised(means_);
  scatter_ = Vector<double>::Zero(targets_.cols());
  if (repeats()) {
    for (Index input = 0; input < inputs(); ++input)
      for (const Index row : rows_of_input_[static_cast<std::size_t>(input)])
        scatter_ += (targets_.row(row) - standard_means_.row(input)).cwiseAbs2().transpose();
    scatter_ /= static_cast<double>(targets_.rows() - inputs());
  }
  represented_ =
      representative_sets(inputs(), problem.inputs ? problem.inputs->groups : std::vector<Index>()).inputs;
}

double Observations::relative() const {
  if (!repeats() || weights_.size() > 0) return 1;
  return static_cast<double>(inputs()) / static_cast<double>(problem_.targets.rows());
}

/// Weights say that a row is a mean of observations: rows of one input are then one row, its mean. Without weights each
/// is an observation.
double Observations::share(Index row) const {
  if (weights_.size() == 0) return 1;
  const Index input = problem_.inputs ? problem_.inputs->of_row[static_cast<std::size_t>(row)] : row;
  return weights_(row) / sums_(input);
}

/// With the factor f of an input, its prediction m from all others misses f times the mean of its rows by f (mean - m),
/// with the variance f^2 v + lambda.
Observations::Rows Observations::rows_of(const LeaveOneOut& unit, double lambda, Index first_output) const {
  Rows rows;
  for (const Index input : represented_)
    for (const Index row : rows_of_input_[static_cast<std::size_t>(input)]) rows.rows.push_back(row);
  const auto count = static_cast<Index>(rows.rows.size());
  const Index outputs = unit.residuals.cols();
  rows.others = {Matrix<double>(count, outputs), Vector<double>(count)};
  rows.shares = Vector<double>(count);
  Index at = 0;
  for (std::size_t k = 0; k < represented_.size(); ++k) {
    const Index input = represented_[k], place = static_cast<Index>(k);
    const double factor = factors_.size() > 0 ? factors_(input) : 1;
    for (const Index row : rows_of_input_[static_cast<std::size_t>(input)]) {
      rows.others.residuals.row(at) =
          unit.residuals.row(place) / factor +
          (targets_.row(row) - standard_means_.row(input)).segment(first_output, outputs);
      rows.others.variances(at) = std::max(unit.variances(place) - lambda, 0.0) / (factor * factor) + lambda;
      rows.shares(at++) = share(row);
    }
  }
  return rows;
}

double Observations::cost_of_scatter(double noise, Index first_output, Index outputs) const {
  double cost = 0;
  for (const double variance : scatter_.segment(first_output, outputs))
    if (const double ratio = variance / noise; ratio > 1) cost += (ratio - 1 - std::log(ratio)) / 2;
  return cost * static_cast<double>(targets_.rows() - inputs()) / static_cast<double>(targets_.rows());
}

Vector<double> Observations::class_counts() const {
  const std::vector<int> labels = classes_of(problem_.targets);
  Vector<double> counts = Vector<double>::Zero(std::max<Index>(2, problem_.targets.cols()));
  for (std::size_t row = 0; row < labels.size(); ++row) counts(labels[row]) += share(static_cast<Index>(row));
  return counts;
}

ClassCalibrationFit Observations::calibration(const LeaveOneOut& unit, double amplitude,
                                              double lambda) const {
  const Rows rows = rows_of(unit, lambda, 0);
  const Matrix<double> seen = targets_(rows.rows, Eigen::all);
  return fit_class_calibration(seen - rows.others.residuals, amplitude * rows.others.variances,
                               classes_of(seen), class_counts(), rows.shares);
}

LeftOut Observations::left_out() const {
  LeftOut left_out;
  if (problem_.inputs) left_out.groups = problem_.inputs->groups;
  if (problem_.kind == TargetKind::classes)
    left_out.score = [this](const LeaveOneOut& unit, double amplitude, double lambda, Index) {
      return calibration(unit, amplitude, lambda).log_loss;
    };
  else if (repeats() && weights_.size() == 0)
    left_out.score = [this](const LeaveOneOut& unit, double amplitude, double lambda, Index first_output) {
      LeaveOneOut rows = rows_of(unit, lambda, first_output).others;
      rows.variances *= amplitude;
      return rows.negative_log_predictive_density() +
             cost_of_scatter(amplitude * lambda, first_output, rows.residuals.cols());
    };
  return left_out;
}

double known_noise_amplitude(const Matrix<double>& gram, const Matrix<double>& targets, double noise,
                             const std::vector<double>& grid, int threads) {
  const auto require = [](bool holds, const char* what) {
    if (!holds)
      throw ArgumentError(fmt::format("known_noise_amplitude: {} must be positive and finite", what));
  };
  const auto is_positive = [](double value) { return value > 0 && std::isfinite(value); };
  require(is_positive(noise), "the noise variance");
  require(!grid.empty() && std::ranges::all_of(grid, is_positive),
          "the shares of the grid, of which there is one at least,");
  std::optional<NotPositiveDefinite> last;
  const double diagonal = gram.diagonal().mean();
  const auto unlikeliness = [&](double log_amplitude) {
    const double amplitude = std::exp(log_amplitude);
    try {
      return -Regression::fit(gram, targets, AbsoluteNoise(noise / amplitude), threads)
                  .with_amplitude(amplitude)
                  .log_marginal_likelihood();
    } catch (const NotPositiveDefinite& error) {
      last = error;
      return std::numeric_limits<double>::max();
    }
  };
  std::vector<double> logarithms;
  for (const double value : grid) logarithms.push_back(std::log(noise / (value * diagonal)));
  std::ranges::sort(logarithms);
  std::vector<double> values;
  for (const double logarithm : logarithms) values.push_back(unlikeliness(logarithm));
  const auto best = static_cast<std::size_t>(std::ranges::min_element(values) - values.begin());
  if (values[best] == std::numeric_limits<double>::max()) throw *last;
  constexpr double beyond = 1;  // Of a single amplitude of the grid, and past its ends.
  const double low = best > 0 ? logarithms[best - 1] : logarithms[best] - beyond,
               high = best + 1 < values.size() ? logarithms[best + 1] : logarithms[best] + beyond;
  constexpr int bits = 12;
  const auto found = boost::math::tools::brent_find_minima(unlikeliness, low, high, bits);
  return std::exp(found.second < values[best] ? found.first : logarithms[best]);
}

}  // namespace widelimit::gp
