#include <algorithm>
#include <utility>

#include "cli/heads_times.hpp"
#include "widelimit/specialization/flow.hpp"
#include "widelimit/specialization/sgd.hpp"
#include "widelimit/specialization/trained_heads.hpp"

namespace widelimit::cli {

using nlohmann::json;

namespace {

// A flow is looked at in pieces of this many steps, so that it can end once all times are known.
constexpr Index steps_a_piece = 500;

/// Flows of an experiment: what they have in common.
struct TimedFlows {
  Prior prior;
  Index heads, tokens, dimension, samples, steps;
  double step, delta, stop_gradient;
  SampleSymmetry symmetry;
  RunControl control;
};

TimedFlows timed_flows(FieldReader& in, double delta, const RunControl& control) {
  TimedFlows flows{.prior = prior_of(in),
                   .heads = in.integer("heads"),
                   .tokens = in.integer("tokens"),
                   .dimension = in.integer("dimension"),
                   .samples = 0,
                   .steps = 0,
                   .step = in.number("step", 0.1),
                   .delta = in.number("delta", delta),
                   .stop_gradient = in.number("stop_gradient", 0),
                   .symmetry = symmetry_of(in, SampleSymmetry::closed),
                   .control = control};
  flows.samples = samples_of(in, "samples", 20'000, flows.prior.features());
  flows.steps = steps_in(in, "step", flows.step);
  require_dimension(in, flows.heads + flows.prior.features());
  return flows;
}

/// The start of a flow in place of SGD's in D dimensions.
MatchedFlow flow_start(const TimedFlows& flows, HeadActivation activation, double eta, std::uint64_t seed) {
  const Index heads = flows.heads, features = flows.prior.features();
  const GramState start =
      random_gram_start(activation, heads, features, flows.dimension, eta, seed + kStartSeed);
  return matched_flow(
      {0, 0,
       order_parameters(start.gram.topLeftCorner(heads, heads), start.gram.topRightCorner(heads, features),
                        start.gram.bottomRightCorner(features, features)),
       start.b, start.v});
}

/// First times at which quantities_of(m), of the overlaps along the flow from a random start, exceed delta.
template <typename Quantities>
FirstTimes first_times(const TimedFlows& flows, HeadActivation activation, double eta, std::uint64_t seed,
                       std::size_t count, const Quantities& quantities_of) {
  const MatchedFlow matched = flow_start(flows, activation, eta, seed);
  const auto samples = SampleSet<float>::draw(flows.prior, {flows.tokens, flows.heads, flows.samples}, seed,
                                              {flows.symmetry, matched.spike_root, flows.control});
  FlowOptions options;
  options.step = flows.step;
  options.stop_gradient = flows.stop_gradient;
  FirstTimes found(count);
  HeadParameters state = matched.start;
  for (Index done = 0;; done += options.steps) {
    options.steps = std::min(steps_a_piece, flows.steps - done);
    options.record = record_every(1, options.steps);
    options.run = piece_of(flows.control, done, flows.steps);
    const auto points = gradient_flow(activation, state, samples, options);
    for (const FlowPoint& point : points)
      found.see(static_cast<double>(done) * flows.step + point.tau,
                quantities_of(point.parameters.m * matched.spike_root), flows.delta);
    if (found.all())
      found.end = RunEnd::specialised;
    else if (points.back().gradient < flows.stop_gradient)
      found.end = RunEnd::rest;
    if (found.end != RunEnd::tau || done + options.steps >= flows.steps) return found;
    state = points.back().parameters;
  }
}

/// "activation", or all of "activations".
std::vector<HeadActivation> activations_of(FieldReader& in) {
  if (in.has("activation") == in.has("activations"))
    in.fail("activation", "give either activation or activations");
  if (!in.has("activations")) return {activation_of(in)};
  std::vector<HeadActivation> activations;
  for (const std::string& name : in.texts("activations"))
    activations.push_back(head_activation_from_name(name));
  return activations;
}

}  // namespace

ExperimentTable phase_transition_experiment(FieldReader& in, const RunControl& control) {
  const std::vector<HeadActivation> activations = activations_of(in);
  const TimedFlows flows = timed_flows(in, 0.2, control);
  const bool single = in.has("activation");
  std::vector<std::string> names;
  for (const HeadActivation activation : activations)
    names.emplace_back(single ? "" : head_activation_name(activation));
  TimesTable times("specialisation_time", names);
  times.fill(in, flows.dimension, [&](double eta, std::uint64_t seed) {
    std::vector<FirstTimes> runs;
    for (const HeadActivation activation : activations)
      runs.push_back(first_times(flows, activation, eta, seed, 1, [](const Matrix<double>& m) {
        return Vector<double>(Vector<double>::Constant(1, max_split(m)));
      }));
    return runs;
  });
  for (std::size_t k = 0; k < activations.size(); ++k) {
    json summary = times.summary_of(k);
    if (const auto rate = saddle_rate(in, activations[k], flows.prior, control))
      summary["inverse_rate"] = 1 / rate->rate;
    if (single)
      times.table.summary = std::move(summary);
    else
      times.table.summary[names[k]] = std::move(summary);
  }
  times.table.summary["ends"] = times.ends();
  return std::move(times.table);
}

ExperimentTable feature_times_experiment(FieldReader& in, const RunControl& control) {
  const HeadActivation activation = activation_of(in);
  const TimedFlows flows = timed_flows(in, 1, control);
  std::vector<std::string> names;
  for (Index f = 0; f < flows.prior.features(); ++f) names.push_back(fmt::format("{}", f));
  TimesTable times("feature_time", names);
  times.fill(in, flows.dimension, [&](double eta, std::uint64_t seed) {
    return std::vector<FirstTimes>{first_times(flows, activation, eta, seed, names.size(),
                                               [](const Matrix<double>& m) { return feature_splits(m); })};
  });
  for (std::size_t f = 0; f < names.size(); ++f)
    times.table.summary["features"].push_back(times.summary_of(f));
  times.table.summary["ends"] = times.ends();
  return std::move(times.table);
}

}  // namespace widelimit::cli
