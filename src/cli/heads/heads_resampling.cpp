#include <algorithm>

#include "cli/heads/heads_config.hpp"
#include "widelimit/specialization/resampled_flow.hpp"

namespace widelimit::cli {

using nlohmann::json;

namespace {

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
  FlowPairSetup setup = read_flow_pair(in, read_prior(in));
  setup.samples.run = setup.flow.run = control;
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
