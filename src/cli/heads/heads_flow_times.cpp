#include <fmt/format.h>

#include <utility>

#include "cli/heads/heads_times.hpp"

namespace widelimit::cli {

using nlohmann::json;

namespace {

enum class Dynamics { flow, sgd };

Dynamics dynamics_of(ConfigReader& in) {
  const Dynamics dynamics = in.text("dynamics") == "flow" ? Dynamics::flow : Dynamics::sgd;
  const auto refuse = [&](const char* field, const char* other) {
    if (in.has(field)) in.fail(field, fmt::format("has no effect with {}: leave it out", other));
  };
  if (dynamics == Dynamics::sgd)
    for (const char* field : {"step", "samples", "symmetry", "stop_gradient"}) refuse(field, "SGD");
  else
    for (const char* field : {"gamma", "batch"}) refuse(field, "flows");
  return dynamics;
}

/// "dimension", or all of "dimensions".
std::vector<Index> dimensions_of(ConfigReader& in) {
  in.require_either("dimension", "dimensions");
  return in.has("dimensions") ? in.integers("dimensions") : std::vector<Index>{in.integer("dimension")};
}

TimedFlows timed_runs(ConfigReader& in, const RunControl& control) {
  return {.prior = prior_of(in),
          .heads = in.integer("heads"),
          .tokens = in.integer("tokens"),
          .delta = in.number("delta"),
          .run = control};
}

/// What is a flow's alone.
void read_flow(ConfigReader& in, TimedFlows& flows) {
  flows.step = in.number("step");
  flows.stop_gradient = in.number("stop_gradient");
  flows.symmetry = in.choice("symmetry", sample_symmetries);
  flows.samples = samples_of(in, "samples", flows.prior.features());
  flows.steps = steps_in(in, "step", flows.step);
}

/// "activation", or all of "activations".
std::vector<HeadActivation> activations_of(ConfigReader& in) {
  in.require_either("activation", "activations");
  if (!in.has("activations")) return {activation_of(in)};
  std::vector<HeadActivation> activations;
  for (const std::string& name : in.texts("activations"))
    activations.push_back(head_activation_from_name(name));
  return activations;
}

}  // namespace

ResultTable phase_transition_experiment(ConfigReader& in, const RunControl& control) {
  const std::vector<HeadActivation> activations = activations_of(in);
  const Dynamics dynamics = dynamics_of(in);
  TimedFlows runs = timed_runs(in, control);
  if (dynamics == Dynamics::flow) {
    read_flow(in, runs);
  } else {
    runs.step = in.number("gamma");
    runs.steps = steps_in(in, "gamma", runs.step);
  }
  const Index batch = in.integer("batch", 0);
  const bool single = in.has("activation");
  std::vector<std::string> names;
  for (const HeadActivation activation : activations)
    names.emplace_back(single ? "" : head_activation_name(activation));
  TimesTable times("specialisation_time", names, in.has("dimensions"));
  for (const Index dimension : dimensions_of(in)) {
    runs.dimension = dimension;
    require_dimension(in, dimension,
                      runs.heads + runs.prior.features() + (dynamics == Dynamics::sgd ? runs.tokens : 0));
    times.fill(in, dimension, [&](double eta, std::uint64_t seed) {
      std::vector<FirstTimes> found;
      for (const HeadActivation activation : activations) {
        runs.activation = activation;
        found.push_back(dynamics == Dynamics::flow ? head_split_time(runs, eta, seed)
                                                   : head_split_time_of_sgd(runs, batch, eta, seed));
      }
      return found;
    });
  }
  for (std::size_t k = 0; k < activations.size(); ++k) {
    json summary = times.summary_of(k);
    if (const auto rate = saddle_rate(in, activations[k], runs.prior, control))
      summary["inverse_rate"] = 1 / rate->rate;
    if (single)
      times.table.summary = std::move(summary);
    else
      times.table.summary[names[k]] = std::move(summary);
  }
  times.table.summary["ends"] = times.ends();
  times.note_times();
  return std::move(times.table);
}

ResultTable feature_times_experiment(ConfigReader& in, const RunControl& control) {
  TimedFlows flows = timed_runs(in, control);
  read_flow(in, flows);
  flows.dimension = in.integer("dimension");
  require_dimension(in, flows.dimension, flows.heads + flows.prior.features());
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
  times.note_times();
  return std::move(times.table);
}

}  // namespace widelimit::cli
