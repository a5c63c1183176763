#include <algorithm>

#include "specialization/experiments/shared.hpp"
#include "widelimit/specialization/experiments.hpp"
#include "widelimit/specialization/resampled_flow.hpp"
#include "widelimit/specialization/sgd_runs.hpp"
#include "widelimit/specialization/trained_heads.hpp"

namespace widelimit::specialization {

using nlohmann::json;
using results::matrix_column;
using results::not_in_files;

namespace {

Table sgd_table(const SgdSetup& setup, Index starts) {
  const Index heads = setup.heads, features = setup.prior.features();
  return Table({start_column(starts),
                {.name = "tau"},
                {.name = "loss"},
                matrix_column("m", heads, features),
                not_in_files(matrix_column("q", heads, heads)),
                not_in_files(matrix_column("p", features, features)),
                matrix_column("S", heads, heads),
                results::vector_column("b", heads),
                results::vector_column("v", scale_count(setup.activation, heads))});
}

void add_sgd(Table& table, Index start, const std::vector<SgdPoint>& points) {
  for (const SgdPoint& point : points)
    table.add(static_cast<double>(start), point.tau, point.loss, point.overlaps.m, point.overlaps.q,
              point.overlaps.p, point.overlaps.S, point.b, point.v);
}

/// The largest differences of m and S, at any time.
struct Differences {
  double m = 0, S = 0;

  void see(const Matrix<double>& first_m, const Matrix<double>& second_m, const Matrix<double>& first_S,
           const Matrix<double>& second_S) {
    m = std::max(m, (first_m - second_m).cwiseAbs().maxCoeff());
    S = std::max(S, (first_S - second_S).cwiseAbs().maxCoeff());
  }
  [[nodiscard]] json summary(std::uint64_t seed) const {
    return {{"seed", seed}, {"largest_difference_m", m}, {"largest_difference_S", S}};
  }
};

/// tau, both losses and both m of two dynamics at the same times.
Table pair_table(Index starts, const std::string& first, const std::string& second, Index heads,
                 Index features) {
  return Table({start_column(starts),
                {.name = "tau"},
                {.name = "loss_" + first},
                {.name = "loss_" + second},
                matrix_column("m_" + first + "_", heads, features),
                matrix_column("m_" + second + "_", heads, features)});
}

/// run(start, seed) of so many starts gives their summaries.
template <typename Run>
json over_starts(Index starts, std::uint64_t seed, const char* spread, const Run& run) {
  std::vector<json> summaries;
  for (Index start = 0; start < starts; ++start)
    summaries.push_back(run(start, seed + static_cast<std::uint64_t>(start)));
  return summary_of_starts(summaries, spread);
}

Results seeded_by(std::uint64_t seed) {
  Results results;
  results.origin.seed = seed;
  return results;
}

}  // namespace

Results sgd_results(const SgdSetup& given, Index starts) {
  SgdSetup setup = given;
  Results results = seeded_by(given.options.seed);
  results.table = sgd_table(setup, starts);
  results.summary = over_starts(
      starts, given.options.seed, "specialisation_time", [&](Index start, std::uint64_t seed) -> json {
        setup.options.seed = seed;
        const std::vector<SgdPoint> points = sgd_from_random_start(setup);
        add_sgd(results.table, start, points);
        std::vector<double> tau;
        std::vector<Matrix<double>> m;
        for (const SgdPoint& point : points) {
          tau.push_back(point.tau);
          m.push_back(point.overlaps.m);
        }
        return {{"seed", seed},
                {"specialisation_time", number_or_null(specialisation_time(tau, m))},
                {"m", results::matrix_json(m.back())},
                {"S", results::matrix_json(points.back().overlaps.S)}};
      });
  return results;
}

Results comparison_results(const Comparison& both, Index starts) {
  SgdSetup setup = both.sgd;
  const Index features = setup.prior.features();
  Results results = seeded_by(setup.options.seed);
  results.table = pair_table(starts, "sgd", "flow", setup.heads, features);
  Table& sgd = results.tables["sgd"] = sgd_table(setup, starts);
  Table& beside = results.tables["flow"] = flow_table(starts, setup.activation, setup.heads, features);
  results.summary = over_starts(
      starts, both.sgd.options.seed, "largest_difference_m", [&](Index start, std::uint64_t seed) {
        setup.options.seed = seed;
        const std::vector<SgdPoint> points = sgd_from_random_start(setup);
        const MatchedFlow matched = matched_flow(points.front());
        const std::vector<FlowPoint> flow = flow_beside(setup, points, matched, both.flow);
        add_sgd(sgd, start, points);
        add_flow(beside, start, flow, matched.spike_root);
        Differences worst;
        for (std::size_t i = 0; i < points.size(); ++i) {
          const Matrix<double> m = flow[i].parameters.m * matched.spike_root;
          const OrderParameters& overlaps = points[i].overlaps;
          results.table.add(static_cast<double>(start), points[i].tau, points[i].loss, flow[i].loss,
                            overlaps.m, m);
          worst.see(overlaps.m, m, overlaps.S, flow[i].S);
        }
        return worst.summary(seed);
      });
  return results;
}

Results resampling_results(const FlowPairSetup& setup, Index starts, std::uint64_t first_seed) {
  const Index heads = setup.shape.heads, features = setup.prior.features();
  Results results = seeded_by(first_seed);
  results.table = pair_table(starts, "kept", "fresh", heads, features);
  Table& kept_flow = results.tables["kept"] = flow_table(starts, setup.activation, heads, features);
  Table& fresh_flow = results.tables["fresh"] = kept_flow;
  results.summary =
      over_starts(starts, first_seed, "largest_difference_m", [&](Index start, std::uint64_t seed) {
        const FlowPair pair = flow_pair(setup, seed);
        add_flow(kept_flow, start, pair.kept);
        add_flow(fresh_flow, start, pair.fresh);
        Differences worst;
        for (std::size_t i = 0; i < pair.kept.size(); ++i) {
          const FlowPoint &kept = pair.kept[i], &fresh = pair.fresh[i];
          results.table.add(static_cast<double>(start), kept.tau, kept.loss, fresh.loss, kept.parameters.m,
                            fresh.parameters.m);
          worst.see(kept.parameters.m, fresh.parameters.m, kept.S, fresh.S);
        }
        json summary = worst.summary(seed);
        const FlowPoint& end = pair.kept.back();
        summary.update({{"tau", end.tau},
                        {"converged", end.gradient < setup.flow.stop_gradient},
                        {"largest_gradient", end.gradient}});
        return summary;
      });
  return results;
}

Results sgd_experiment(ConfigReader& fields, const results::Control& control) {
  SgdSetup setup = read_sgd(fields, read_prior(fields));
  setup.options.run = control;
  return sgd_results(setup, fields.integer("starts"));
}

Results compare_experiment(ConfigReader& fields, const results::Control& control) {
  Comparison both = read_comparison(fields, read_prior(fields));
  both.sgd.options.run = control;
  return comparison_results(both, fields.integer("starts"));
}

Results resampling_experiment(ConfigReader& fields, const results::Control& control) {
  FlowPairSetup setup = read_flow_pair(fields, read_prior(fields));
  setup.samples.run = setup.flow.run = control;
  return resampling_results(setup, fields.integer("starts"), read_seed(fields));
}

}  // namespace widelimit::specialization
