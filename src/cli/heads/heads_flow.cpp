#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "cli/heads/heads_config.hpp"
#include "widelimit/specialization/order_parameters.hpp"
#include "widelimit/specialization/trained_heads.hpp"
#include "widelimit/specialization/trained_starts.hpp"

namespace widelimit::cli {

using nlohmann::json;

namespace {

struct FlowRun {
  TrainingSetup setup;
  std::vector<TrainedStart> starts;
};

FlowRun run_flow(ConfigReader& in, const RunControl& control) {
  TrainingSetup setup = read_training(in, read_prior(in));
  setup.flow.run = control;
  const std::optional<HeadParameters> start = read_start(in, setup);
  auto trained = start ? train_from_starts(setup, *start) : train_from_starts(setup);
  return {std::move(setup), std::move(trained)};
}

json start_summary(const TrainedStart& start) {
  const FlowPoint& end = start.end();
  std::vector<double> tau;
  std::vector<Matrix<double>> m;
  for (const FlowPoint& point : start.points) {
    tau.push_back(point.tau);
    m.push_back(point.parameters.m);
  }
  json left = json::array();
  for (const LeftSaddle& saddle : start.left_saddles)
    left.push_back({{"tau", saddle.tau}, {"loss", saddle.loss}, {"split_rate", saddle.rate}});
  return {{"seed", start.seed},
          {"loss", start.loss},
          {"loss_standard_error", start.standard_error},
          {"converged", start.converged},
          {"saddle", start.curvature ? json(start.at_saddle()) : json()},
          {"split_rate", start.at_saddle() ? json(-*start.curvature) : json()},
          {"left_saddles", left},
          {"tau", end.tau},
          {"largest_gradient", end.gradient},
          {"specialisation_time", time_or_null(specialisation_time(tau, m))},
          {"m", matrix_json(end.parameters.m)},
          {"S", matrix_json(end.S)},
          {"b", to_json(end.parameters.b)},
          {"v", to_json(end.parameters.v)}};
}

/// Why heads of a run have no specialisation time, where some have none.
void note_times(const FlowRun& run, ResultTable& table) {
  const auto missing = [](const json& start) { return start.at("specialisation_time").is_null(); };
  const json& starts = table.summary.at("starts");
  const auto count = std::count_if(starts.begin(), starts.end(), missing);
  if (count == 0) return;
  table.notes["specialisation_time"] =
      run.setup.heads == 1 ? "a single head has no other to differ from, and specialises at no time"
                           : fmt::format("in {} of {} starts no two heads came to differ by more than 0.2",
                                         count, starts.size());
}

/// The start with the median loss in full, the spread of the losses, and every start.
json flow_summary(const std::vector<TrainedStart>& starts) {
  json summary = start_summary(starts[median_start(starts)]);
  summary["converged"] =
      std::all_of(starts.begin(), starts.end(), [](const TrainedStart& start) { return start.converged; });
  summary["losses"] = spread_json(loss_spread(starts));
  for (const TrainedStart& start : starts) summary["starts"].push_back(start_summary(start));
  return summary;
}

}  // namespace

ResultTable flow_experiment(ConfigReader& in, const RunControl& control) {
  const FlowRun run = run_flow(in, control);
  ResultTable table;
  table.columns = trajectory_columns(run.setup.heads, run.setup.prior.features(),
                                     scale_count(run.setup.activation, run.setup.heads));
  name_start_column(in, table);
  for (std::size_t k = 0; k < run.starts.size(); ++k)
    for (const FlowPoint& point : run.starts[k].points)
      append_row(table, k,
                 trajectory_row(point.tau, point.loss, point.parameters.m, point.S, point.parameters.b,
                                point.parameters.v));
  table.summary = flow_summary(run.starts);
  note_times(run, table);
  return table;
}

namespace {

/// The attention of the heads after training to the first sequences of a set, a row a sequence, head and token.
std::vector<std::vector<double>> attention_rows(HeadActivation activation, const HeadParameters& heads,
                                                const SampleSet<float>& samples, Index sequences) {
  const Index tokens = samples.tokens(), features = samples.features();
  std::vector<std::vector<double>> rows;
  for (Index sequence = 0; sequence < sequences; ++sequence) {
    const auto value = [&](Index row) {
      return [&samples, sequence, row](Index token, Index column) {
        return static_cast<double>(samples.value(sequence, token, row + column));
      };
    };
    const Matrix<double> chi_star = Matrix<double>::NullaryExpr(tokens, features, value(0));
    const Matrix<double> xi = Matrix<double>::NullaryExpr(tokens, samples.noises(), value(features));
    const Matrix<double> map = attention_map(activation, heads, chi_star, xi);
    for (Index h = 0; h < map.rows(); ++h)
      for (Index l = 0; l < tokens; ++l)
        rows.push_back(
            {static_cast<double>(sequence), static_cast<double>(h), static_cast<double>(l), map(h, l)});
  }
  return rows;
}

}  // namespace

ResultTable attention_experiment(ConfigReader& in, const RunControl& control) {
  const Index sequences = in.integer("sequences");
  const FlowRun run = run_flow(in, control);
  const HeadActivation activation = run.setup.activation;
  const SampleSet<float> fresh = fresh_samples(run.setup);
  if (sequences > fresh.count())
    in.fail("sequences", fmt::format("expected at most {}, fresh_samples, got {}", fresh.count(), sequences));
  ResultTable table;
  table.columns = {"sequence", "head", "token", "weight"};
  table.rows =
      attention_rows(activation, run.starts[median_start(run.starts)].end().parameters, fresh, sequences);
  table.summary = flow_summary(run.starts);
  note_times(run, table);
  const auto add_mass = [&](const TrainedStart& start, json& summary) {
    const AttentionMass mass = attention_mass(activation, start.end().parameters, fresh, control);
    summary["relevant_mass"] = mass.relevant;
    summary["other_mass"] = mass.other;
  };
  for (std::size_t k = 0; k < run.starts.size(); ++k) add_mass(run.starts[k], table.summary["starts"][k]);
  const json& median = table.summary["starts"][median_start(run.starts)];
  for (const char* mass : {"relevant_mass", "other_mass"}) table.summary[mass] = median[mass];
  return table;
}

ResultTable prune_experiment(ConfigReader& in, const RunControl& control) {
  const PruneNormaliser normaliser = read_normaliser(in);
  const FlowRun run = run_flow(in, control);
  const SampleSet<float> fresh = fresh_samples(run.setup);
  ResultTable table;
  table.columns = {"removed", "loss", "head"};
  name_start_column(in, table);
  std::vector<std::vector<double>> losses(static_cast<std::size_t>(run.setup.heads));
  for (std::size_t k = 0; k < run.starts.size(); ++k) {
    const PruneResult result =
        greedy_prune(run.setup.activation, run.starts[k].end().parameters, fresh, normaliser, control);
    for (std::size_t i = 0; i < result.losses.size(); ++i) {
      losses[i].push_back(result.losses[i]);
      append_row(table, k,
                 {static_cast<double>(i), result.losses[i],
                  i == 0 ? missing_value : static_cast<double>(result.removed[i - 1])});
    }
  }
  table.summary = flow_summary(run.starts);
  note_times(run, table);
  table.notes["head"] = "before the first removal there is none";
  for (const std::vector<double>& values : losses)
    table.summary["pruned"].push_back(spread_json(spread_of(values)));
  return table;
}

}  // namespace widelimit::cli
