#include <algorithm>

#include "cli/heads/heads_config.hpp"
#include "widelimit/specialization/resampled_flow.hpp"

namespace widelimit::cli {

using nlohmann::json;

namespace {

FlowPairSetup resampling_setup(ConfigReader& in, const RunControl& control) {
  FlowPairSetup setup{.activation = activation_of(in),
                      .prior = prior_of(in),
                      .shape = {in.integer("tokens"), in.integer("heads"), 0},
                      .samples = {in.choice("symmetry", sample_symmetries), {}, control},
                      .flow = {},
                      .eta = in.number("eta")};
  setup.shape.count = samples_of(in, "samples", setup.prior.features());
  setup.flow.step = in.number("step");
  setup.flow.steps = steps_in(in, "step", setup.flow.step);
  setup.flow.record = records_of(in, setup.flow.steps);
  setup.flow.stop_gradient = in.number("stop_gradient");
  setup.flow.run = control;
  return setup;
}

json append_pair(const FlowPairSetup& setup, std::size_t start, std::uint64_t seed, ResultTable& table) {
  const FlowPair pair = flow_pair(setup, seed);
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
  const FlowPairSetup setup = resampling_setup(in, control);
  ResultTable table;
  table.columns = {"tau", "loss_kept", "loss_fresh"};
  name_entries(table.columns, "m_kept_", setup.shape.heads, setup.prior.features());
  name_entries(table.columns, "m_fresh_", setup.shape.heads, setup.prior.features());
  name_start_column(in, table);
  return over_starts(
      in, std::move(table),
      [&](std::size_t start, std::uint64_t seed, ResultTable& rows) {
        return append_pair(setup, start, seed, rows);
      },
      "largest_difference_m");
}

}  // namespace widelimit::cli
