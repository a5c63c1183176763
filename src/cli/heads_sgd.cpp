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

SgdRun run_sgd_experiment(FieldReader& in, const RunControl& control) {
  const HeadActivation activation = activation_of(in);
  const Prior prior = prior_of(in);
  const Index heads = in.integer("heads"), dimension = in.integer("dimension"), features = prior.features();
  SgdOptions options;
  options.tokens = in.integer("tokens");
  options.batch = in.integer("batch", dimension);
  options.gamma = in.number("gamma", 0.02);
  options.steps = steps_in(in, "gamma", options.gamma);
  options.record = records_of(in, options.steps, 100);
  options.seed = seed_of(in);
  options.run = control;
  const double eta = in.number("eta", 1);
  const auto form = choice<SgdForm>(in, "form", {{"gram", SgdForm::gram}, {"vector", SgdForm::vector}});
  const std::uint64_t start_seed = options.seed + kStartSeed;
  std::vector<SgdPoint> points;
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
                                   const RunControl& control) {
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
  const auto samples =
      SampleSet<float>::draw(run.prior, {run.tokens, run.heads, in.integer("samples", 100'000)}, seed_of(in),
                             {symmetry_of(in, SampleSymmetry::plain), matched.spike_root, control});
  return gradient_flow(run.activation, matched.start, samples, options);
}

/// Specialisation time of the flow from a random start of D dimensions, spikes whitened.
std::optional<double> flow_split_time(FieldReader& in, const Prior& prior, double eta, std::uint64_t seed,
                                      const RunControl& control) {
  const HeadActivation activation = activation_of(in);
  const Index heads = in.integer("heads"), features = prior.features();
  const GramState start =
      random_gram_start(activation, heads, features, in.integer("dimension"), eta, seed + kStartSeed);
  const SgdPoint point{
      0, 0,
      order_parameters(start.gram.topLeftCorner(heads, heads), start.gram.topRightCorner(heads, features),
                       start.gram.bottomRightCorner(features, features)),
      start.b, start.v};
  const MatchedFlow matched = matched_flow(point);
  const auto samples =
      SampleSet<float>::draw(prior, {in.integer("tokens"), heads, in.integer("samples", 20'000)}, seed,
                             {symmetry_of(in, SampleSymmetry::closed), matched.spike_root, control});
  FlowOptions options;
  options.step = in.number("step", 0.1);
  options.steps = steps_in(in, "step", options.step);
  options.record = record_every(1, options.steps);
  options.run = control;
  std::vector<double> tau;
  std::vector<Matrix<double>> m;
  for (const FlowPoint& flow : gradient_flow(activation, matched.start, samples, options)) {
    tau.push_back(flow.tau);
    m.push_back(flow.parameters.m * matched.spike_root);
  }
  return specialisation_time(tau, m, in.number("delta", 0.2));
}

/// Slope of y against x by least squares; NaN for fewer than two different x.
double least_squares_slope(const std::vector<std::pair<double, double>>& points) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [a, b] : points) {
    n += 1;
    x += a;
    y += b;
    xx += a * a;
    xy += a * b;
  }
  const double spread = n * xx - x * x;
  return spread > 1e-12 * n * xx ? (n * xy - x * y) / spread : kMissing;
}

}  // namespace

ExperimentTable sgd_experiment(FieldReader& in, const RunControl& control) {
  const SgdRun run = run_sgd_experiment(in, control);
  ExperimentTable table;
  table.columns = trajectory_columns(run.heads, run.prior.features(), scale_count(run.activation, run.heads));
  std::vector<double> tau;
  std::vector<Matrix<double>> m;
  for (const SgdPoint& point : run.points) {
    table.rows.push_back(
        trajectory_row(point.tau, point.loss, point.overlaps.m, point.overlaps.S, point.b, point.v));
    tau.push_back(point.tau);
    m.push_back(point.overlaps.m);
  }
  table.summary = {{"specialisation_time", time_or_null(specialisation_time(tau, m))},
                   {"m", to_json(m.back())},
                   {"S", to_json(run.points.back().overlaps.S)}};
  return table;
}

ExperimentTable compare_experiment(FieldReader& in, const RunControl& control) {
  const SgdRun run = run_sgd_experiment(in, control);
  const MatchedFlow matched = matched_flow(run.points.front());
  const std::vector<FlowPoint> flow = flow_beside(in, run, matched, control);
  ExperimentTable table;
  table.columns = {"tau", "loss_sgd", "loss_flow"};
  name_entries(table.columns, "m_sgd_", run.heads, run.prior.features());
  name_entries(table.columns, "m_flow_", run.heads, run.prior.features());
  double worst_m = 0, worst_S = 0;
  for (std::size_t i = 0; i < run.points.size(); ++i) {
    const Matrix<double> m = flow[i].parameters.m * matched.spike_root;
    const OrderParameters& overlaps = run.points[i].overlaps;
    std::vector<double> row = {run.points[i].tau, run.points[i].loss, flow[i].loss};
    append(row, overlaps.m);
    append(row, m);
    table.rows.push_back(std::move(row));
    worst_m = std::max(worst_m, (overlaps.m - m).cwiseAbs().maxCoeff());
    worst_S = std::max(worst_S, (overlaps.S - flow[i].S).cwiseAbs().maxCoeff());
  }
  table.summary = {{"largest_difference_m", worst_m}, {"largest_difference_S", worst_S}};
  return table;
}

ExperimentTable phase_transition_experiment(FieldReader& in, const RunControl& control) {
  const Prior prior = prior_of(in);
  const Index runs = in.integer("runs", 2);
  require_at_least("config", "runs", runs, 1);
  ExperimentTable table;
  table.columns = {"eta", "run", "log_scale", "specialisation_time", "ratio"};
  std::vector<std::pair<double, double>> points;
  const Vector<double> etas = field_value(in, "etas");
  if (etas.size() == 0)
    throw ArgumentError("config.etas: must hold at least one size of the start, got none");
  for (const double eta : etas) require_positive("config", "etas", eta);
  for (const double eta : etas) {
    const double scale = std::log(std::sqrt(in.number("dimension")) / eta);
    for (Index run = 0; run < runs; ++run) {
      const auto time =
          flow_split_time(in, prior, eta, seed_of(in) + static_cast<std::uint64_t>(run), control);
      const double tau = time.value_or(kMissing);
      table.rows.push_back({eta, static_cast<double>(run), scale, tau, tau / scale});
      if (time) points.emplace_back(scale, tau);
    }
  }
  const double slope = least_squares_slope(points);
  table.summary = {{"slope", std::isnan(slope) ? json(nullptr) : json(slope)}};
  if (const auto rate = saddle_rate(in, activation_of(in), prior, control))
    table.summary["inverse_rate"] = 1 / rate->rate;
  return table;
}

}  // namespace widelimit::cli
