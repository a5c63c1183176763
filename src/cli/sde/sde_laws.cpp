#include <fmt/format.h>

#include <cstdio>
#include <limits>
#include <string_view>

#include "cli/output/result_text.hpp"
#include "cli/sde/sde_law_setup.hpp"
#include "cli/sde/sde_run.hpp"
#include "widelimit/covariance_sde/deterministic_limit.hpp"
#include "widelimit/covariance_sde/exact_distributions.hpp"
#include "widelimit/covariance_sde/explosion.hpp"

namespace widelimit::cli {

using namespace covariance_sde;
using nlohmann::json;

namespace {

/// The exact share, or null and why it is not known; for the picture, where null is not drawn.
double add_exact(const SdeSetup& setup, double time, json& row) {
  try {
    const double exact = 1 - gap_distribution(setup.model, gap_of(setup.v0), time).total_mass();
    row["exact"] = exact;
    return exact;
  } catch (const std::exception& error) {
    if (!is_out_of_reach(error)) throw;
    row["exact"] = nullptr;
    row["exact_missing"] = out_of_reach(setup.model, time);
    return std::numeric_limits<double>::quiet_NaN();
  }
}

/// A row a time: the share that exploded by then, and what the exact law says.
json explosion_rows(const SdeSetup& setup, const CovarianceEnsemble& ensemble, LinePlot& plot) {
  json rows = json::array();
  for (const ExplosionShare& share : explosion_shares(setup.model, setup.v0, ensemble)) {
    json row{{"time", share.time},
             {"beyond_upper", share.beyond_upper},
             {"explodes_from_there", share.explodes_from_there},
             {"probability", share.probability},
             {"interval_95", {share.interval.lower, share.interval.upper}}};
    plot.x.push_back(share.time);
    plot.samples[0].add(share.probability, share.interval.lower, share.interval.upper);
    if (has_gap_law(setup)) plot.curves[0].values.push_back(add_exact(setup, share.time, row));
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Entries on and above the diagonal at each time, a curve each.
struct FlowTable {
  LinePlot plot{.title = "Covariances of tokens in the deterministic limit",
                .x_label = "time",
                .y_label = "entry of V",
                .x = {}};
  std::string csv = "time";
};

FlowTable flow_table(const std::vector<double>& times, const std::vector<Matrix<double>>& states) {
  FlowTable table;
  for (Index a = 0; a < states.front().rows(); ++a)
    for (Index b = a; b < states.front().cols(); ++b) {
      table.plot.curves.push_back({fmt::format("V{}_{}", a, b), {}});
      table.csv += "," + table.plot.curves.back().name;
    }
  table.csv += "\n";
  for (std::size_t k = 0; k < times.size(); ++k) {
    table.plot.x.push_back(times[k]);
    table.csv += fmt::format("{}", times[k]);
    std::size_t curve = 0;
    for (Index a = 0; a < states[k].rows(); ++a)
      for (Index b = a; b < states[k].cols(); ++b) {
        table.plot.curves[curve++].values.push_back(states[k](a, b));
        table.csv += fmt::format(",{:.17g}", states[k](a, b));
      }
    table.csv += "\n";
  }
  return table;
}

}  // namespace

void run_sde_explosion(const SdeArguments& arguments, const RunContext& context) {
  SdeRun run(arguments, context, "explosion", {"explosion.json"}, {"explosion.png"});
  LinePlot plot{.title = "Explosion of the covariance SDE",
                .x_label = "time, layers over width",
                .y_label = "share of paths that have exploded",
                .x = {},
                .curves = {},
                .samples = {{"sampled, 95 % interval"}}};
  Matrix<double> v0;
  json report = run.with_config([&] {
    SdeSetup setup = run.read_setup(run.config, read_sde_setup);
    if (has_gap_law(setup)) plot.curves.push_back({"exact probability", {}});
    v0 = setup.v0;
    const CovarianceEnsemble ensemble = sampled_ensemble(setup);
    json result{{"explosion", explosion_rows(setup, ensemble, plot)}, {"counts", ensemble_counts(ensemble)}};
    if (has_gap_law(setup))
      result["exact_at_any_time"] = explosion_probability(setup.model, gap_of(setup.v0));
    return result;
  });
  for (const json& row : report["explosion"])
    say("time {:<8g} exploded {:.4f}  95 % {:.4f} to {:.4f}{}\n", row["time"].get<double>(),
        row["probability"].get<double>(), row["interval_95"][0].get<double>(),
        row["interval_95"][1].get<double>(),
        !row.contains("exact")   ? ""
        : row["exact"].is_null() ? "  exact: not known"
                                 : fmt::format("  exact {:.4f}", row["exact"].get<double>()));
  run.write_report("explosion.json", report);
  run.finish({{"V0", {v0.rows(), v0.cols()}}, {"times", plot.x.size()}},
             {[&] { return lines_script(plot); }});
}

namespace {

/// The states by the last time that has one: a drift that explodes has none from then on.
std::vector<Matrix<double>> flow_states(const ConfigReader& fields, const FlowSetup& setup,
                                        std::string& missing) {
  std::vector<Matrix<double>> states;
  for (const double time : setup.times) {
    try {
      states.push_back(setup.model ? drift_flow(*setup.model, setup.v0, time)
                                   : commuting_limit(setup.v0, time, setup.shortcut));
    } catch (const NumericalError& error) {
      const std::string_view reason = error.what();  // after the function's name
      missing = fmt::format("expected times before the flow explodes, got {:g}: {}", time,
                            reason.substr(reason.find(": ") + 2));
      break;
    }
  }
  if (states.empty())
    fields.fail(fields.has("times") ? "times[0]" : fields.has("horizon") ? "horizon" : "depth", missing);
  return states;
}

}  // namespace

void run_sde_flow(const SdeArguments& arguments, const RunContext& context) {
  SdeRun run(arguments, context, "flow", {"flow.csv"}, {"flow.png"});
  std::vector<double> times;
  std::string missing;
  const std::vector<Matrix<double>> states = run.with_config([&] {
    const FlowSetup setup = run.read(run.config, read_flow_setup);
    times = setup.times;
    return flow_states(run.reader(run.config), setup, missing);
  });
  if (states.size() < times.size())
    warn("{}: config.times[{}]: {}; this time and those after it are left out", arguments.config.string(),
         states.size(), missing);
  times.resize(states.size());
  const FlowTable table = flow_table(times, states);
  run.write_csv("flow.csv", table.csv);
  print_csv(table.csv);
  run.finish({{"V0", {states.front().rows(), states.front().cols()}}, {"times", times.size()}},
             {[&] { return lines_script(table.plot); }});
}

}  // namespace widelimit::cli
