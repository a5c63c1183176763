#include <utility>

#include "cli/heads_times.hpp"

namespace widelimit::cli {

using nlohmann::json;

namespace {

TimedFlows timed_flows(FieldReader& in, double delta, const RunControl& control) {
  TimedFlows flows{.prior = prior_of(in),
                   .heads = in.integer("heads"),
                   .tokens = in.integer("tokens"),
                   .dimension = in.integer("dimension"),
                   .step = in.number("step", 0.1),
                   .delta = in.number("delta", delta),
                   .stop_gradient = in.number("stop_gradient", 0),
                   .symmetry = symmetry_of(in, SampleSymmetry::closed),
                   .run = control};
  flows.samples = samples_of(in, "samples", 20'000, flows.prior.features());
  flows.steps = steps_in(in, "step", flows.step);
  require_dimension(in, flows.heads + flows.prior.features());
  return flows;
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
  TimedFlows flows = timed_flows(in, 0.2, control);
  const bool single = in.has("activation");
  std::vector<std::string> names;
  for (const HeadActivation activation : activations)
    names.emplace_back(single ? "" : head_activation_name(activation));
  TimesTable times("specialisation_time", names);
  times.fill(in, flows.dimension, [&](double eta, std::uint64_t seed) {
    std::vector<FirstTimes> runs;
    for (const HeadActivation activation : activations) {
      flows.activation = activation;
      runs.push_back(head_split_time(flows, eta, seed));
    }
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
  TimedFlows flows = timed_flows(in, 1, control);
  flows.activation = activation_of(in);
  std::vector<std::string> names;
  for (Index f = 0; f < flows.prior.features(); ++f) names.push_back(fmt::format("{}", f));
  TimesTable times("feature_time", names);
  times.fill(in, flows.dimension, [&](double eta, std::uint64_t seed) {
    return std::vector<FirstTimes>{feature_split_times(flows, eta, seed)};
  });
  for (std::size_t f = 0; f < names.size(); ++f)
    times.table.summary["features"].push_back(times.summary_of(f));
  times.table.summary["ends"] = times.ends();
  return std::move(times.table);
}

}  // namespace widelimit::cli
