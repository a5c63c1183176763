#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/heads/heads_config.hpp"
#include "widelimit/specialization/sgd_runs.hpp"
#include "widelimit/specialization/trained_heads.hpp"

namespace widelimit::cli {

using nlohmann::json;

namespace {

SgdSetup with_run(SgdSetup setup, std::uint64_t seed, const RunControl& control) {
  setup.options.seed = seed;
  setup.options.run = control;
  return setup;
}

/// One SGD: its rows after those of others, and its results.
json append_sgd(ConfigReader& in, std::size_t start, std::uint64_t seed, const RunControl& control,
                ResultTable& table) {
  const SgdSetup setup = with_run(read_sgd(in, read_prior(in)), seed, control);
  const std::vector<SgdPoint> points = sgd_from_random_start(setup);
  if (table.columns.empty()) {
    table.columns =
        trajectory_columns(setup.heads, setup.prior.features(), scale_count(setup.activation, setup.heads));
    name_start_column(in, table);
  }
  std::vector<double> tau;
  std::vector<Matrix<double>> m;
  for (const SgdPoint& point : points) {
    append_row(table, start,
               trajectory_row(point.tau, point.loss, point.overlaps.m, point.overlaps.S, point.b, point.v));
    tau.push_back(point.tau);
    m.push_back(point.overlaps.m);
  }
  return {{"seed", seed},
          {"specialisation_time", time_or_null(specialisation_time(tau, m))},
          {"m", matrix_json(m.back())},
          {"S", matrix_json(points.back().overlaps.S)}};
}

/// One SGD beside its flow.
json append_comparison(ConfigReader& in, std::size_t start, std::uint64_t seed, const RunControl& control,
                       ResultTable& table) {
  const Comparison both = read_comparison(in, read_prior(in));
  const SgdSetup setup = with_run(both.sgd, seed, control);
  const std::vector<SgdPoint> points = sgd_from_random_start(setup);
  const MatchedFlow matched = matched_flow(points.front());
  const std::vector<FlowPoint> flow = flow_beside(setup, points, matched, both.flow);
  if (table.columns.empty()) {
    table.columns = {"tau", "loss_sgd", "loss_flow"};
    name_entries(table.columns, "m_sgd_", setup.heads, setup.prior.features());
    name_entries(table.columns, "m_flow_", setup.heads, setup.prior.features());
    name_start_column(in, table);
  }
  double worst_m = 0, worst_S = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Matrix<double> m = flow[i].parameters.m * matched.spike_root;
    const OrderParameters& overlaps = points[i].overlaps;
    std::vector<double> row = {points[i].tau, points[i].loss, flow[i].loss};
    append(row, overlaps.m);
    append(row, m);
    append_row(table, start, std::move(row));
    worst_m = std::max(worst_m, (overlaps.m - m).cwiseAbs().maxCoeff());
    worst_S = std::max(worst_S, (overlaps.S - flow[i].S).cwiseAbs().maxCoeff());
  }
  return {{"seed", seed}, {"largest_difference_m", worst_m}, {"largest_difference_S", worst_S}};
}

}  // namespace

ResultTable sgd_experiment(ConfigReader& in, const RunControl& control) {
  return over_starts(
      in, {},
      [&](std::size_t start, std::uint64_t seed, ResultTable& table) {
        return append_sgd(in, start, seed, control, table);
      },
      "specialisation_time");
}

ResultTable compare_experiment(ConfigReader& in, const RunControl& control) {
  return over_starts(
      in, {},
      [&](std::size_t start, std::uint64_t seed, ResultTable& table) {
        return append_comparison(in, start, seed, control, table);
      },
      "largest_difference_m");
}

}  // namespace widelimit::cli
