#include <fmt/format.h>

#include <utility>

#include "cli/heads/heads_times.hpp"

namespace widelimit::cli {

using nlohmann::json;

namespace {

/// "dimension", or all of "dimensions".
std::vector<Index> dimensions_of(ConfigReader& in) {
  in.require_either("dimension", "dimensions");
  return in.has("dimensions") ? in.integers("dimensions") : std::vector<Index>{in.integer("dimension")};
}

/// "activation", or all of "activations".
std::vector<HeadActivation> activations_of(ConfigReader& in) {
  in.require_either("activation", "activations");
  if (!in.has("activations")) return {read_activation(in)};
  std::vector<HeadActivation> activations;
  for (const std::string& name : in.texts("activations"))
    activations.push_back(head_activation_from_name(name));
  return activations;
}

}  // namespace

ResultTable phase_transition_experiment(ConfigReader& in, const RunControl& control) {
  const std::vector<HeadActivation> activations = activations_of(in);
  TimedSetup setup = read_timed_runs(in, read_prior(in));
  setup.runs.run = control;
  const bool single = in.has("activation");
  std::vector<std::string> names;
  for (const HeadActivation activation : activations)
    names.emplace_back(single ? "" : head_activation_name(activation));
  TimesTable times("specialisation_time", names, in.has("dimensions"));
  for (const Index dimension : dimensions_of(in)) {
    set_dimension(in, dimension, setup);
    times.fill(in, dimension, [&](double eta, std::uint64_t seed) {
      std::vector<FirstTimes> found;
      for (const HeadActivation activation : activations) {
        setup.runs.activation = activation;
        found.push_back(setup.split_times(eta, seed));
      }
      return found;
    });
  }
  for (std::size_t k = 0; k < activations.size(); ++k) {
    json summary = times.summary_of(k);
    if (const auto rate = saddle_rate(in, activations[k], setup.runs.prior, control))
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
  TimedSetup setup = read_timed_runs(in, read_prior(in));
  set_dimension(in, in.integer("dimension"), setup);
  TimedFlows& flows = setup.runs;
  flows.run = control;
  flows.activation = read_activation(in);
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
