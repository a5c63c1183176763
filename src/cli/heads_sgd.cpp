#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/heads_config.hpp"
#include "numerics/count.hpp"
#include "specialization/checks.hpp"
#include "widelimit/specialization/flow.hpp"
#include "widelimit/specialization/sgd.hpp"
#include "widelimit/specialization/trained_heads.hpp"

namespace widelimit::cli {

using nlohmann::json;

namespace {

enum class SgdForm { gram, vector };

struct SgdRun {
  HeadActivation activation;
  Prior prior;
  Index tokens;
  Index heads;
  double gamma;
  double noise;  ///< gamma D / N_b.
  std::vector<SgdPoint> points;
};

void check_planted(FieldReader& in, Index heads, Index features) {
  const Matrix<double> m = field_value(in, "planted_m");
  if (m.rows() != heads || m.cols() != features)
    in.fail("planted_m",
            fmt::format("expected {} x {} numbers, got {} x {}", heads, features, m.rows(), m.cols()));
}

SgdRun run_sgd_experiment(FieldReader& in, std::uint64_t seed, const RunControl& control) {
  const HeadActivation activation = activation_of(in);
  const Prior prior = prior_of(in);
  const Index heads = in.integer("heads"), dimension = in.integer("dimension"), features = prior.features();
  SgdOptions options;
  options.tokens = in.integer("tokens");
  options.batch = in.integer("batch", dimension);
  options.gamma = in.number("gamma", 0.02);
  options.steps = steps_in(in, "gamma", options.gamma);
  options.record = records_of(in, options.steps, 100);
  options.seed = seed;
  options.run = control;
  const double eta = in.number("eta", 1);
  const auto form = choice<SgdForm>(in, "form", {{"gram", SgdForm::gram}, {"vector", SgdForm::vector}});
  const std::uint64_t start_seed = options.seed + kStartSeed;
  std::vector<SgdPoint> points;
  if (in.has("planted_m")) check_planted(in, heads, features);
  require_dimension(in, form == SgdForm::gram ? heads + features + options.tokens : features);
  if (form == SgdForm::gram) {
    GramState start = random_gram_start(activation, heads, features, dimension, eta, start_seed);
    if (in.has("planted_m")) start = plant(start, field_value(in, "planted_m"));
    points = gram_sgd(activation, prior, start, options);
  } else {
    SgdStart start = random_start(activation, heads, features, dimension, eta, start_seed);
    if (in.has("planted_m")) start = plant(start, field_value(in, "planted_m"));
    points = sgd(activation, prior, start, options);
  }
  const double noise = options.gamma * static_cast<double>(dimension) / static_cast<double>(options.batch);
  return {activation, prior, options.tokens, heads, options.gamma, noise, std::move(points)};
}

/// The flow from SGD's own start, at SGD's recorded times.
std::vector<FlowPoint> flow_beside(FieldReader& in, const SgdRun& run, const MatchedFlow& matched,
                                   std::uint64_t seed, const RunControl& control) {
  FlowOptions options;
  options.step = in.number("step", 0.1);
  options.steps = steps_in(in, "step", options.step);
  options.batch_noise = run.noise;
  options.run = control;
  for (const SgdPoint& point : run.points) {
    const Index step = numerics::checked_count(std::round(point.tau / options.step), numerics::most_steps,
                                               "config.step: steps up to a recorded time");
    if (std::abs(static_cast<double>(step) * options.step - point.tau) > 1e-9 * std::max(1.0, point.tau))
      throw ArgumentError(
          fmt::format("config.step: SGD is recorded at tau = {}, which is no multiple of the flow's step {}; "
                      "change records or step",
                      point.tau, options.step));
    options.record.push_back(step);
  }
  const auto samples = SampleSet<float>::draw(
      run.prior, {run.tokens, run.heads, samples_of(in, "samples", 100'000, run.prior.features())}, seed,
      {symmetry_of(in, SampleSymmetry::plain), matched.spike_root, control});
  return gradient_flow(run.activation, matched.start, samples, options);
}

}  // namespace

namespace {

/// One SGD: its rows behind those of others, and its results.
json append_sgd(FieldReader& in, std::size_t start, std::uint64_t seed, const RunControl& control,
                ExperimentTable& table) {
  const SgdRun run = run_sgd_experiment(in, seed, control);
  if (table.columns.empty()) {
    table.columns =
        trajectory_columns(run.heads, run.prior.features(), scale_count(run.activation, run.heads));
    name_start_column(in, table);
  }
  std::vector<double> tau;
  std::vector<Matrix<double>> m;
  for (const SgdPoint& point : run.points) {
    append_row(table, start,
               trajectory_row(point.tau, point.loss, point.overlaps.m, point.overlaps.S, point.b, point.v));
    tau.push_back(point.tau);
    m.push_back(point.overlaps.m);
  }
  return {{"seed", seed},
          {"specialisation_time", time_or_null(specialisation_time(tau, m))},
          {"m", to_json(m.back())},
          {"S", to_json(run.points.back().overlaps.S)}};
}

/// One SGD beside its flow.
json append_comparison(FieldReader& in, std::size_t start, std::uint64_t seed, const RunControl& control,
                       ExperimentTable& table) {
  const SgdRun run = run_sgd_experiment(in, seed, control);
  const MatchedFlow matched = matched_flow(run.points.front());
  const std::vector<FlowPoint> flow = flow_beside(in, run, matched, seed, control);
  if (table.columns.empty()) {
    table.columns = {"tau", "loss_sgd", "loss_flow"};
    name_entries(table.columns, "m_sgd_", run.heads, run.prior.features());
    name_entries(table.columns, "m_flow_", run.heads, run.prior.features());
    name_start_column(in, table);
  }
  double worst_m = 0, worst_S = 0;
  for (std::size_t i = 0; i < run.points.size(); ++i) {
    const Matrix<double> m = flow[i].parameters.m * matched.spike_root;
    const OrderParameters& overlaps = run.points[i].overlaps;
    std::vector<double> row = {run.points[i].tau, run.points[i].loss, flow[i].loss};
    append(row, overlaps.m);
    append(row, m);
    append_row(table, start, std::move(row));
    worst_m = std::max(worst_m, (overlaps.m - m).cwiseAbs().maxCoeff());
    worst_S = std::max(worst_S, (overlaps.S - flow[i].S).cwiseAbs().maxCoeff());
  }
  return {{"seed", seed}, {"largest_difference_m", worst_m}, {"largest_difference_S", worst_S}};
}

}  // namespace

ExperimentTable sgd_experiment(FieldReader& in, const RunControl& control) {
  return over_starts(
      in, {},
      [&](std::size_t start, std::uint64_t seed, ExperimentTable& table) {
        return append_sgd(in, start, seed, control, table);
      },
      "specialisation_time");
}

ExperimentTable compare_experiment(FieldReader& in, const RunControl& control) {
  return over_starts(
      in, {},
      [&](std::size_t start, std::uint64_t seed, ExperimentTable& table) {
        return append_comparison(in, start, seed, control, table);
      },
      "largest_difference_m");
}

}  // namespace widelimit::cli
