#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "specialization/experiments/shared.hpp"
#include "widelimit/specialization/experiments.hpp"
#include "widelimit/specialization/trained_heads.hpp"
#include "widelimit/specialization/trained_starts.hpp"

namespace widelimit::specialization {

using nlohmann::json;
using results::matrix_json;
using results::vector_json;

namespace {

/// Flows from the starts that the fields ask for.
struct FlowRun {
  TrainingSetup setup;
  std::vector<TrainedStart> starts;

  [[nodiscard]] const TrainedStart& median() const { return starts[median_start(starts)]; }
};

std::vector<TrainedStart> trained(const TrainingSetup& setup, const std::optional<HeadParameters>& start) {
  return start ? train_from_starts(setup, *start) : train_from_starts(setup);
}

FlowRun run_flow(ConfigReader& fields, const results::Control& control) {
  TrainingSetup setup = read_training(fields, read_prior(fields));
  setup.flow.run = control;
  auto starts = trained(setup, read_start(fields, setup));
  return {std::move(setup), std::move(starts)};
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
          {"specialisation_time", number_or_null(specialisation_time(tau, m))},
          {"m", matrix_json(end.parameters.m)},
          {"S", matrix_json(end.S)},
          {"b", vector_json(end.parameters.b)},
          {"v", vector_json(end.parameters.v)}};
}

json spread_json(const Spread& spread) {
  return {{"median", spread.median}, {"least", spread.least}, {"greatest", spread.greatest}};
}

/// The start with the median loss in full, the spread of the losses, and every start; and why heads have no
/// specialisation time, where some have none.
void summarise(const FlowRun& run, Results& results) {
  json& summary = results.summary = start_summary(run.median());
  summary["converged"] = std::ranges::all_of(run.starts, &TrainedStart::converged);
  summary["losses"] = spread_json(loss_spread(run.starts));
  for (const TrainedStart& start : run.starts) summary["starts"].push_back(start_summary(start));
  const json& starts = summary.at("starts");
  const auto missing = [](const json& start) { return start.at("specialisation_time").is_null(); };
  const auto count = std::count_if(starts.begin(), starts.end(), missing);
  if (count == 0) return;
  results.notes["specialisation_time"] =
      run.setup.heads == 1 ? "a single head has no other to differ from, and specialises at no time"
                           : fmt::format("in {} of {} starts no two heads came to differ by more than 0.2",
                                         count, starts.size());
}

Results results_of(const FlowRun& run) {
  const TrainingSetup& setup = run.setup;
  Results results;
  results.origin.seed = setup.seed;
  results.table = flow_table(setup.starts, setup.activation, setup.heads, setup.prior.features());
  for (std::size_t k = 0; k < run.starts.size(); ++k) {
    add_flow(results.table, static_cast<Index>(k), run.starts[k].points);
    results.unwritten["curvatures"].push_back(number_or_null(run.starts[k].curvature));
  }
  summarise(run, results);
  return results;
}

}  // namespace

Results flow_results(const TrainingSetup& setup, const std::optional<HeadParameters>& start) {
  return results_of({setup, trained(setup, start)});
}

Results flow_experiment(ConfigReader& fields, const results::Control& control) {
  return results_of(run_flow(fields, control));
}

void tabulate_flow(Results& results) {
  const json& summary = results.summary;
  const auto number = [](const json& value) {
    return value.is_number() ? value.get<double>() : std::nan("");
  };
  results.table =
      Table({"loss", "loss_standard_error", "least_loss", "greatest_loss", "converged", "specialisation_time",
             "tau", "split_rate"},
            {{number(summary.at("loss")), number(summary.at("loss_standard_error")),
              number(summary.at("losses").at("least")), number(summary.at("losses").at("greatest")),
              summary.at("converged").get<bool>() ? 1.0 : 0.0, number(summary.at("specialisation_time")),
              number(summary.at("tau")), number(summary.at("split_rate"))}});
  if (summary.at("split_rate").is_null())
    results.notes["split_rate"] = "none where the flow does not end at a saddle";
}

Results attention_experiment(ConfigReader& fields, const results::Control& control) {
  const Index sequences = fields.integer("sequences");
  const FlowRun run = run_flow(fields, control);
  const HeadActivation activation = run.setup.activation;
  const SampleSet<float> fresh = fresh_samples(run.setup);
  if (sequences > fresh.count())
    fields.fail("sequences",
                fmt::format("expected at most {}, fresh_samples, got {}", fresh.count(), sequences));
  Results results = seeded(fields);
  results.table = Table({{.name = "sequence"}, {.name = "head"}, {.name = "token"}, {.name = "weight"}});
  for (Index sequence = 0; sequence < sequences; ++sequence) {
    const auto columns = [&](Index first, Index count) -> Matrix<double> {
      return Matrix<double>::NullaryExpr(fresh.tokens(), count, [&](Index token, Index column) {
        return static_cast<double>(fresh.value(sequence, token, first + column));
      });
    };
    const Matrix<double> map =
        attention_map(activation, run.median().end().parameters, columns(0, fresh.features()),
                      columns(fresh.features(), fresh.noises()));
    for (Index h = 0; h < map.rows(); ++h)
      for (Index l = 0; l < map.cols(); ++l)
        results.table.add(static_cast<double>(sequence), static_cast<double>(h), static_cast<double>(l),
                          map(h, l));
  }
  summarise(run, results);
  json& starts = results.summary["starts"];
  for (std::size_t k = 0; k < run.starts.size(); ++k) {
    const AttentionMass mass = attention_mass(activation, run.starts[k].end().parameters, fresh, control);
    starts[k].update({{"relevant_mass", mass.relevant}, {"other_mass", mass.other}});
  }
  for (const char* mass : {"relevant_mass", "other_mass"})
    results.summary[mass] = results.summary["starts"][median_start(run.starts)][mass];
  return results;
}

Results prune_experiment(ConfigReader& fields, const results::Control& control) {
  const PruneNormaliser normaliser = read_normaliser(fields);
  const FlowRun run = run_flow(fields, control);
  const SampleSet<float> fresh = fresh_samples(run.setup);
  Results results = seeded(fields);
  results.table =
      Table({start_column(run.setup.starts), {.name = "removed"}, {.name = "loss"}, {.name = "head"}});
  std::vector<std::vector<double>> losses(static_cast<std::size_t>(run.setup.heads));
  for (std::size_t k = 0; k < run.starts.size(); ++k) {
    const PruneResult pruned =
        greedy_prune(run.setup.activation, run.starts[k].end().parameters, fresh, normaliser, control);
    for (std::size_t i = 0; i < pruned.losses.size(); ++i) {
      losses[i].push_back(pruned.losses[i]);
      results.table.add(static_cast<double>(k), static_cast<double>(i), pruned.losses[i],
                        i == 0 ? std::nan("") : static_cast<double>(pruned.removed[i - 1]));
    }
  }
  summarise(run, results);
  results.notes["head"] = "before the first removal there is none";
  for (const std::vector<double>& values : losses)
    results.summary["pruned"].push_back(spread_json(spread_of(values)));
  return results;
}

}  // namespace widelimit::specialization
