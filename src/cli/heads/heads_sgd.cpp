#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/heads/heads_config.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/specialization/sgd_runs.hpp"
#include "widelimit/specialization/trained_heads.hpp"

namespace widelimit::cli {

using nlohmann::json;

namespace {

void check_planted(ConfigReader& in, const Matrix<double>& m, Index heads, Index features) {
  if (m.rows() != heads || m.cols() != features)
    in.fail("planted_m",
            fmt::format("expected {} x {} numbers, got {} x {}", heads, features, m.rows(), m.cols()));
}

SgdSetup sgd_setup(ConfigReader& in, std::uint64_t seed, const RunControl& control) {
  SgdSetup setup;
  setup.activation = activation_of(in);
  setup.prior = prior_of(in);
  setup.heads = in.integer("heads");
  setup.dimension = in.integer("dimension");
  setup.eta = in.number("eta");
  setup.form = in.choice("form", sgd_forms);
  setup.options.tokens = in.integer("tokens");
  setup.options.batch = in.integer("batch", setup.dimension);
  setup.options.gamma = in.number("gamma");
  setup.options.steps = steps_in(in, "gamma", setup.options.gamma);
  setup.options.record = records_of(in, setup.options.steps);
  setup.options.seed = seed;
  setup.options.run = control;
  const Index features = setup.prior.features();
  if (in.has("planted_m")) {
    setup.planted_m = matrix_of(in, "planted_m");
    check_planted(in, setup.planted_m, setup.heads, features);
  }
  require_dimension(in, setup.dimension,
                    setup.form == SgdForm::gram ? setup.heads + features + setup.options.tokens : features);
  return setup;
}

/// How the flow beside it is followed; ArgumentError where SGD is recorded between its steps.
BesideOptions beside_options(ConfigReader& in, const SgdSetup& setup, const std::vector<SgdPoint>& points) {
  BesideOptions options;
  options.step = in.number("step");
  static_cast<void>(steps_in(in, "step", options.step));
  naming_errors("config.step", [&] { static_cast<void>(flow_steps_at(points, options.step)); });
  options.samples = samples_of(in, "samples", setup.prior.features());
  options.symmetry = in.choice("symmetry", sample_symmetries);
  return options;
}

}  // namespace

namespace {

/// One SGD: its rows after those of others, and its results.
json append_sgd(ConfigReader& in, std::size_t start, std::uint64_t seed, const RunControl& control,
                ResultTable& table) {
  const SgdSetup setup = sgd_setup(in, seed, control);
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
  const SgdSetup setup = sgd_setup(in, seed, control);
  const std::vector<SgdPoint> points = sgd_from_random_start(setup);
  const MatchedFlow matched = matched_flow(points.front());
  const std::vector<FlowPoint> flow = flow_beside(setup, points, matched, beside_options(in, setup, points));
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
