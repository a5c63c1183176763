#include "widelimit/specialization/experiment.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <array>
#include <utility>

#include "checks.hpp"
#include "experiment_parts.hpp"
#include "widelimit/specialization/bayes.hpp"
#include "widelimit/specialization/flow.hpp"
#include "widelimit/specialization/order_parameters.hpp"
#include "widelimit/specialization/trained_heads.hpp"

namespace widelimit::specialization {

using Eigen::Index;
using nlohmann::json;

namespace {

/// start: {"m", "r" or "S", optional "b", "v"}, or the noise start.
HeadParameters start_of(const JsonFields& in, HeadActivation activation, Index heads, Index features) {
  if (!in.has("start"))
    return noise_start(activation, heads, features, in.number("eta", 1), seed_of(in) + kStartSeed);
  const JsonFields start(in.at("start"), "config.start");
  start.allow_only({"m", "r", "S", "b", "v"});
  if (start.has("S") == start.has("r")) throw ArgumentError("config.start: give either S or r");
  const Matrix<double> m = start.matrix("m"), given = start.matrix(start.has("S") ? "S" : "r");
  if (m.rows() != heads)
    throw ArgumentError(
        fmt::format("config.start.m: must have {} rows, one a head, got {}", heads, m.rows()));
  check_shape("config.start", start.has("S") ? "S" : "r", given, heads, heads);
  HeadParameters parameters =
      with_initial_offsets(activation, m, start.has("S") ? symmetric_root(given) : given);
  if (start.has("b")) parameters.b = start.vector("b");
  if (start.has("v")) parameters.v = start.vector("v");
  return parameters;
}

struct FlowRun {
  HeadActivation activation;
  Prior prior;
  Index tokens;
  Index heads;
  std::vector<FlowPoint> points;
  SampleSet<float> fresh;
};

FlowRun run_flow(const JsonFields& in) {
  const HeadActivation activation = activation_of(in);
  const Prior prior = prior_of(in);
  const Index tokens = in.integer("tokens"), heads = in.integer("heads");
  FlowOptions options;
  options.step = in.number("step", 0.1);
  options.steps = steps_in(in, "step", options.step);
  options.record = records_of(in, options.steps, 200);
  options.variant = choice<FlowVariant>(
      in, "variant", {{"frame", FlowVariant::frame}, {"symmetric", FlowVariant::symmetric}}, "frame");
  options.stepper = choice<FlowStepper>(in, "stepper",
                                        {{"euler", FlowStepper::euler},
                                         {"runge_kutta4", FlowStepper::runge_kutta4},
                                         {"dormand_prince", FlowStepper::dormand_prince}},
                                        "euler");
  options.batch_noise = in.number("batch_noise", 0);
  options.stop_gradient = in.number("stop_gradient", 0);
  const HeadParameters start = start_of(in, activation, heads, prior.features());
  const auto samples = SampleSet<float>::draw(prior, {tokens, heads, in.integer("samples", 100'000)},
                                              seed_of(in), {symmetry_of(in, "plain"), {}});
  return {activation,
          prior,
          tokens,
          heads,
          gradient_flow(activation, start, samples, options),
          SampleSet<float>::draw(prior, {tokens, heads, in.integer("fresh_samples", 200'000)},
                                 seed_of(in) + kFreshSeed)};
}

/// Final loss on fresh samples and split time of a flow.
json flow_summary(const FlowRun& run) {
  const HeadParameters& end = run.points.back().parameters;
  const SampledLoss loss = sampled_loss(run.activation, end, run.fresh, LossDetail::loss_only);
  std::vector<double> tau;
  std::vector<Matrix<double>> m;
  for (const FlowPoint& point : run.points) {
    tau.push_back(point.tau);
    m.push_back(point.parameters.m);
  }
  return {{"loss", loss.loss},
          {"loss_standard_error", loss.standard_error},
          {"specialisation_time", time_or_null(specialisation_time(tau, m))},
          {"m", to_json(end.m)},
          {"S", to_json(run.points.back().S)},
          {"b", to_json(end.b)},
          {"v", to_json(end.v)}};
}

ExperimentTable flow_experiment(const JsonFields& in) {
  in.allow_only({"prior", "tokens", "seed", "activation", "heads", "tau", "step", "samples", "variant",
                 "symmetry", "fresh_samples", "eta", "stepper", "batch_noise", "stop_gradient", "records",
                 "start"});
  const FlowRun run = run_flow(in);
  ExperimentTable table;
  table.columns = trajectory_columns(run.heads, run.prior.features(), scale_count(run.activation, run.heads));
  for (const FlowPoint& point : run.points)
    table.rows.push_back(trajectory_row(point.tau, point.loss, point.parameters.m, point.S,
                                        point.parameters.b, point.parameters.v));
  table.summary = flow_summary(run);
  return table;
}

ExperimentTable prune_experiment(const JsonFields& in) {
  in.allow_only({"prior", "tokens", "seed", "activation", "heads", "tau", "step", "samples", "variant",
                 "symmetry", "fresh_samples", "eta", "stepper", "batch_noise", "stop_gradient", "records",
                 "start", "normaliser"});
  const auto normaliser = choice<PruneNormaliser>(
      in, "normaliser",
      {{"kept_heads", PruneNormaliser::kept_heads}, {"full_model", PruneNormaliser::full_model}},
      "kept_heads");
  const FlowRun run = run_flow(in);
  const PruneResult result =
      greedy_prune(run.activation, run.points.back().parameters, run.fresh, normaliser);
  ExperimentTable table;
  table.columns = {"removed", "loss", "head"};
  for (std::size_t i = 0; i < result.losses.size(); ++i)
    table.rows.push_back({static_cast<double>(i), result.losses[i],
                          i == 0 ? kMissing : static_cast<double>(result.removed[i - 1])});
  table.summary = flow_summary(run);
  return table;
}

ExperimentTable bayes_experiment(const JsonFields& in) {
  in.allow_only({"prior", "tokens", "seed", "samples"});
  const BayesRisk risk =
      bayes_risk(prior_of(in), in.integer("tokens"), in.integer("samples", 1'000'000), seed_of(in));
  ExperimentTable table;
  table.columns = {"bayes_risk", "standard_error"};
  table.rows = {{risk.risk, risk.standard_error}};
  table.summary = {{"bayes_risk", risk.risk}, {"standard_error", risk.standard_error}};
  return table;
}

ExperimentTable hessian_experiment(const JsonFields& in) {
  in.allow_only({"prior", "tokens", "seed", "activation", "heads"});
  const HeadActivation activation = activation_of(in);
  const Prior prior = prior_of(in);
  const Index heads = in.integer("heads");
  const HessianConstants c = hessian_constants(activation, in.integer("tokens"), heads);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver{Eigen::MatrixXd(prior.covariance())};
  ExperimentTable table;
  table.columns = {"eigenvalue", "rate_split", "rate_common"};
  for (const double computed : solver.eigenvalues()) {
    const double eigenvalue = std::max(computed, 0.0);
    const EscapeRates rates = escape_rates(c, heads, eigenvalue);
    table.rows.push_back({eigenvalue, heads > 1 ? rates.split : kMissing, rates.common});
  }
  table.summary = {{"c1", c.c1}, {"c2", c.c2}, {"c3", c.c3}, {"c4", c.c4},
                   {"c5", c.c5}, {"b", c.b},   {"v", c.v},   {"initial_pull", c.initial_pull}};
  if (const auto rate = saddle_rate(in, activation, prior)) {
    table.summary["saddle_split_rate"] = rate->rate;
    table.summary["saddle_split_rate_standard_error"] = rate->standard_error;
  }
  return table;
}

using Experiment = ExperimentTable (*)(const JsonFields&);

constexpr std::array<std::pair<const char*, Experiment>, 7> kExperiments = {
    {{"flow", flow_experiment},
     {"sgd", sgd_experiment},
     {"compare", compare_experiment},
     {"bayes", bayes_experiment},
     {"hessian", hessian_experiment},
     {"prune", prune_experiment},
     {"phase-transition", phase_transition_experiment}}};

}  // namespace

const std::vector<std::string>& experiment_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    list.reserve(kExperiments.size());
    for (const auto& [name, run] : kExperiments) list.emplace_back(name);
    return list;
  }();
  return names;
}

ExperimentTable run_experiment(std::string_view name, const json& config) {
  for (const auto& [known, run] : kExperiments)
    if (name == known) return run(JsonFields(config, "config"));
  throw ArgumentError(
      fmt::format("experiment: expected {}, got \"{}\"", fmt::join(experiment_names(), ", "), name));
}

}  // namespace widelimit::specialization
