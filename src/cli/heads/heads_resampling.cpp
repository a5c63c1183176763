#include <algorithm>
#include <cmath>

#include "cli/heads/heads_config.hpp"
#include "widelimit/specialization/flow.hpp"
#include "widelimit/specialization/seeds.hpp"

namespace widelimit::cli {

using nlohmann::json;

namespace {

// Far from the small seeds a user counts up: fresh samples must not repeat those that are kept.
constexpr std::uint64_t fresh_seed = 3'000'000'019;

/// A flow on samples that are kept, and one from the same start for which they are drawn anew at every step.
struct FlowPair {
  std::vector<FlowPoint> kept, fresh;
};

struct ResamplingSetup {
  HeadActivation activation;
  Prior prior;
  SampleShape shape;
  SampleOptions samples;
  FlowOptions flow;
};

ResamplingSetup resampling_setup(ConfigReader& in, const RunControl& control) {
  ResamplingSetup setup{.activation = activation_of(in),
                        .prior = prior_of(in),
                        .shape = {in.integer("tokens"), in.integer("heads"), 0},
                        .samples = {in.choice("symmetry", sample_symmetries), {}, control},
                        .flow = {}};
  setup.shape.count = samples_of(in, "samples", setup.prior.features());
  setup.flow.step = in.number("step");
  setup.flow.steps = steps_in(in, "step", setup.flow.step);
  setup.flow.record = records_of(in, setup.flow.steps);
  setup.flow.stop_gradient = in.number("stop_gradient");
  setup.flow.run = control;
  return setup;
}

/// The flow along the records, up to the last of them.
std::vector<FlowPoint> fresh_flow(const ResamplingSetup& setup, HeadParameters state,
                                  const std::vector<Index>& record, std::uint64_t seed) {
  FlowOptions one = setup.flow;
  one.steps = 1;
  one.record = {0, 1};
  one.stop_gradient = 0;
  one.run.progress = {};
  std::vector<FlowPoint> points;
  for (Index step = 0; points.size() < record.size(); ++step) {
    const auto samples = SampleSet<float>::draw(
        setup.prior, setup.shape, seed * 1'000'003 + fresh_seed + static_cast<std::uint64_t>(step),
        setup.samples);
    std::vector<FlowPoint> pair = gradient_flow(setup.activation, state, samples, one);
    if (setup.flow.run.progress) setup.flow.run.progress(step + 1, record.back());
    state = pair[1].parameters;
    if (step != record[points.size()]) continue;
    points.push_back(std::move(pair[0]));
    points.back().tau = setup.flow.step * static_cast<double>(step);
  }
  return points;
}

FlowPair flow_pair(const ResamplingSetup& setup, double eta, std::uint64_t seed) {
  const HeadParameters start =
      noise_start(setup.activation, setup.shape.heads, setup.prior.features(), eta, seed + start_seed);
  FlowPair pair;
  pair.kept =
      gradient_flow(setup.activation, start,
                    SampleSet<float>::draw(setup.prior, setup.shape, seed, setup.samples), setup.flow);
  // Where the flow on kept samples rests, the other one ends beside it.
  std::vector<Index> record;
  for (const FlowPoint& point : pair.kept)
    record.push_back(static_cast<Index>(std::llround(point.tau / setup.flow.step)));
  pair.fresh = fresh_flow(setup, start, record, seed);
  return pair;
}

json append_pair(ConfigReader& in, const ResamplingSetup& setup, std::size_t start, std::uint64_t seed,
                 ResultTable& table) {
  const FlowPair pair = flow_pair(setup, in.number("eta"), seed);
  double worst_m = 0, worst_S = 0;
  for (std::size_t i = 0; i < pair.kept.size(); ++i) {
    const FlowPoint &kept = pair.kept[i], &fresh = pair.fresh[i];
    std::vector<double> row = {kept.tau, kept.loss, fresh.loss};
    append(row, kept.parameters.m);
    append(row, fresh.parameters.m);
    append_row(table, start, std::move(row));
    worst_m = std::max(worst_m, (kept.parameters.m - fresh.parameters.m).cwiseAbs().maxCoeff());
    worst_S = std::max(worst_S, (kept.S - fresh.S).cwiseAbs().maxCoeff());
  }
  return {{"seed", seed},
          {"tau", pair.kept.back().tau},
          {"converged", pair.kept.back().gradient < setup.flow.stop_gradient},
          {"largest_gradient", pair.kept.back().gradient},
          {"largest_difference_m", worst_m},
          {"largest_difference_S", worst_S}};
}

}  // namespace

ResultTable resampling_experiment(ConfigReader& in, const RunControl& control) {
  const ResamplingSetup setup = resampling_setup(in, control);
  ResultTable table;
  table.columns = {"tau", "loss_kept", "loss_fresh"};
  name_entries(table.columns, "m_kept_", setup.shape.heads, setup.prior.features());
  name_entries(table.columns, "m_fresh_", setup.shape.heads, setup.prior.features());
  name_start_column(in, table);
  return over_starts(
      in, std::move(table),
      [&](std::size_t start, std::uint64_t seed, ResultTable& rows) {
        return append_pair(in, setup, start, seed, rows);
      },
      "largest_difference_m");
}

}  // namespace widelimit::cli
