#include <fmt/format.h>

#include <cmath>
#include <tuple>
#include <utility>

#include "covariance_sde/experiments/shared.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/numerics/statistics.hpp"

namespace widelimit::covariance_sde {

using nlohmann::json;
using numerics::Estimate;

namespace {

double time_at(const CovarianceEnsemble& ensemble, Index time) {
  return ensemble.times()[static_cast<std::size_t>(time)];
}

/// The mean of one value has no standard error.
Estimate mean_of(const std::vector<double>& values) {
  if (values.size() == 1) return {values.front(), std::nan("")};
  return numerics::mean(values);
}

std::vector<double> of_paths(const std::vector<double>& values, const std::vector<Index>& paths) {
  std::vector<double> chosen;
  for (const Index path : paths) chosen.push_back(values[static_cast<std::size_t>(path)]);
  return chosen;
}

std::vector<double> magnitudes(std::vector<double> values) {
  for (double& x : values) x = std::abs(x);
  return values;
}

/// V of every pair, rho and |rho| of every pair of two tokens and the largest eigenvalue, of up to four tokens each,
/// and of three tokens and more the means of rho, |rho| and |V| over all pairs; for the given paths.
std::vector<Observable> observables(const CovarianceEnsemble& ensemble, Index time,
                                    const std::vector<Index>& paths) {
  constexpr Index most_tokens_listed = 4;
  std::vector<Observable> result;
  if (paths.empty()) return result;
  const auto add = [&](std::string name, const std::vector<double>& values) {
    result.push_back({std::move(name), of_paths(values, paths)});
  };
  const Index m = std::min(ensemble.tokens(), most_tokens_listed);
  for (Index a = 0; a < m; ++a)
    for (Index b = a; b < m; ++b) {
      add(fmt::format("V{}{}", a, b), ensemble.entries(time, a, b));
      if (b == a) continue;
      const std::vector<double> correlations = ensemble.correlations(time, a, b);
      add(fmt::format("rho{}{}", a, b), correlations);
      add(fmt::format("abs_rho{}{}", a, b), magnitudes(correlations));
    }
  if (ensemble.tokens() > 2) {
    add("mean_rho", ensemble.mean_correlations(time));
    add("mean_abs_rho", ensemble.mean_absolute_correlations(time));
    add("mean_abs_V", ensemble.mean_absolute_covariances(time));
  }
  add("largest_eigenvalue", ensemble.largest_eigenvalues(time));
  return result;
}

std::vector<results::Column> correlation_columns() {
  std::vector<results::Column> columns{{.name = "time"}};
  for (const char* name : {"mean", "mean_error", "mean_abs", "mean_abs_error", "quantile_5", "quantile_50",
                           "quantile_95", "abs_quantile_95"})
    columns.push_back({.name = name, .format = std::string(name).ends_with("error") ? "{:.3g}" : "{:.10g}"});
  columns.push_back({.name = "count"});
  return columns;
}

/// rho of every pair of every path.
std::vector<double> all_correlations(const CovarianceEnsemble& ensemble, Index time,
                                     const std::vector<Index>& paths) {
  std::vector<double> all;
  for (Index a = 0; a < ensemble.tokens(); ++a)
    for (Index b = a + 1; b < ensemble.tokens(); ++b) {
      const std::vector<double> pair = of_paths(ensemble.correlations(time, a, b), paths);
      all.insert(all.end(), pair.begin(), pair.end());
    }
  return all;
}

/// A row a time: means over pairs of tokens and paths that run, and quantiles over all of them, after the `leading`
/// cells.
template <typename... Leading>
void add_correlations(Table& table, const CovarianceEnsemble& ensemble, const Leading&... leading) {
  for (Index time = 0; ensemble.tokens() > 1 && time <= last_time(ensemble); ++time) {
    const std::vector<Index> paths = ensemble.running_paths(time);
    if (paths.empty()) continue;
    const Estimate mean = mean_of(of_paths(ensemble.mean_correlations(time), paths)),
                   magnitude = mean_of(of_paths(ensemble.mean_absolute_correlations(time), paths));
    const std::vector<double> all = numerics::sorted(all_correlations(ensemble, time, paths));
    const auto at = [](const std::vector<double>& ascending, double p) {
      return numerics::quantile(ascending, p).value;
    };
    table.add(leading..., time_at(ensemble, time), mean.value, mean.standard_error, magnitude.value,
              magnitude.standard_error, at(all, 0.05), at(all, 0.5), at(all, 0.95),
              at(numerics::sorted(magnitudes(all)), 0.95), static_cast<double>(paths.size()));
  }
}

/// Correlations against time, for pictures: means over pairs and paths with standard errors.
PointBars mean_correlations(const std::string& name, const CovarianceEnsemble& ensemble) {
  PointBars bars{name};
  for (Index time = 0; time <= last_time(ensemble); ++time) {
    const std::vector<Index> paths = ensemble.running_paths(time);
    const Estimate mean = paths.empty() ? Estimate{std::nan(""), std::nan("")}
                                        : mean_of(of_paths(ensemble.mean_correlations(time), paths));
    bars.add_with_error(mean.value, std::isnan(mean.standard_error) ? 0 : mean.standard_error);
  }
  return bars;
}

/// Tables of ensembles, point by point: quantiles (every time; apart for the paths that run and those that have
/// stopped), means and correlations (every time, of the paths that run), samples (the last time) and, if they are
/// asked for, trajectories: path by path, a row a time.
class EnsembleTables {
 public:
  EnsembleTables(const ListPoint& first, Index tokens)
      : quantiles(first.table({{.name = "time"},
                               {.name = "observable"},
                               {.name = "probability"},
                               {.name = "quantile", .format = "{:.10g}"},
                               {.name = "standard_error", .format = "{:.3g}"},
                               {.name = "paths"},
                               {.name = "count"}})),
        means(first.table({{.name = "time"},
                           {.name = "observable"},
                           {.name = "mean", .format = "{:.10g}"},
                           {.name = "standard_error", .format = "{:.3g}"},
                           {.name = "count"}})),
        correlations(first.table(correlation_columns())) {
    results::Column entries = results::symmetric_column("V", tokens);
    entries.format = "{:.17g}";
    samples = first.table(
        {{.name = "path"}, {.name = "end"}, {.name = "stop_time"}, {.name = "cone_exits"}, entries});
    trajectories = first.table({{.name = "path"}, {.name = "time"}, {.name = "paths"}, entries});
  }

  void add(const ListPoint& point, const CovarianceEnsemble& ensemble, bool all_times) {
    const Table cells = point.cells();
    for (Index time = 0; time <= last_time(ensemble); ++time) {
      add_quantiles(cells, ensemble, time, "running", ensemble.running_paths(time));
      add_quantiles(cells, ensemble, time, "stopped", ensemble.stopped_paths(time));
    }
    add_correlations(correlations, ensemble, cells);
    for (Index path = 0; path < ensemble.paths(); ++path) {
      const PathOutcome& outcome = ensemble.outcome(path);
      samples.add(cells, static_cast<double>(path), end_name(outcome.end), outcome.stop_time,
                  static_cast<double>(outcome.cone_exits),
                  triangle(ensemble.covariance(last_time(ensemble), path)));
      for (Index time = 0; all_times && time <= last_time(ensemble); ++time)
        trajectories.add(cells, static_cast<double>(path), time_at(ensemble, time),
                         ensemble.running(time, path) ? "running" : "stopped",
                         triangle(ensemble.covariance(time, path)));
    }
  }

  Table quantiles, means, correlations, samples, trajectories;

 private:
  static std::vector<double> triangle(const Matrix<double>& v) {
    std::vector<double> entries;
    for (Index a = 0; a < v.rows(); ++a)
      for (Index b = a; b < v.cols(); ++b) entries.push_back(v(a, b));
    return entries;
  }

  /// With the means of those that run.
  void add_quantiles(const Table& cells, const CovarianceEnsemble& ensemble, Index time,
                     const std::string& group, const std::vector<Index>& paths) {
    const auto count = static_cast<double>(paths.size());
    for (const Observable& observable : observables(ensemble, time, paths)) {
      const std::vector<double> ascending = numerics::sorted(observable.values);
      for (const double p : {0.05, 0.25, 0.5, 0.75, 0.95}) {
        const Estimate quantile = numerics::quantile(ascending, p);
        quantiles.add(cells, time_at(ensemble, time), observable.name, p, quantile.value,
                      quantile.standard_error, group, count);
      }
      if (group != "running") continue;
      const Estimate mean = mean_of(observable.values);
      means.add(cells, time_at(ensemble, time), observable.name, mean.value, mean.standard_error, count);
    }
  }
};

/// Densities and correlations of all points.
struct EnsemblePictures {
  std::vector<DensityPanel> panels;
  LinePlot correlations{.title = "Correlation of tokens, mean over pairs and paths",
                        .x_label = "time, layers over width",
                        .y_label = "mean correlation"};

  /// The panels of V00, V01 and rho01, as far as there are as many tokens.
  void begin(const CovarianceEnsemble& first) {
    correlations.x = first.times();
    panels = {{"variance of the first token, V00", {}, 0}};
    if (first.tokens() < 2) return;
    panels.push_back({"covariance of the first two tokens, V01"});
    panels.push_back({"correlation of the first two tokens", {}, -1, 1});
  }
  /// A curve of each panel's quantity at the last time.
  void add(const CovarianceEnsemble& ensemble, const std::vector<Index>& paths, const DensityCurve& style) {
    const auto add_to = [&](std::size_t panel, const std::vector<double>& values) {
      panels[panel].curves.push_back(style);
      panels[panel].curves.back().values = of_paths(values, paths);
    };
    const Index time = last_time(ensemble);
    add_to(0, ensemble.entries(time, 0, 0));
    if (panels.size() < 2) return;
    add_to(1, ensemble.entries(time, 0, 1));
    add_to(2, ensemble.correlations(time, 0, 1));
  }
  /// Both pictures. One time or one token shows nothing of correlations.
  void finish(Results& results, const std::string& title) const {
    results.pictures.push_back(
        picture([panels = panels, title] { return densities_picture(title, panels); }));
    results.pictures.emplace_back([plot = correlations]() -> std::optional<Picture> {
      return plot.samples.empty() || plot.x.size() < 2 ? std::nullopt : std::optional(lines_picture(plot));
    });
  }
};

nlohmann::ordered_json shapes_of(const CovarianceEnsemble& ensemble, std::size_t points) {
  nlohmann::ordered_json shapes{{"V0", {ensemble.tokens(), ensemble.tokens()}},
                                {"times", ensemble.times().size()},
                                {"paths", ensemble.paths()}};
  if (points > 1) shapes["points"] = points;
  return shapes;
}

/// All setups of the points of the configuration's lists: what is wrong with one shows before the work.
template <typename Read>
auto read_setups(Run& run, const std::vector<ListPoint>& points, const Read& read) {
  std::vector<decltype(read(std::declval<ConfigReader&>()))> setups;
  for (const ListPoint& point : points)
    if (point.network)
      naming_errors(*point.network, [&] { setups.push_back(run.read_setup(point.config, read)); });
    else
      setups.push_back(run.read_setup(point.config, read));
  return setups;
}

/// One point, or a list of all.
json summary_of(std::vector<json> points) {
  if (points.size() == 1) return points.front();
  return {{"points", std::move(points)}};
}

/// The ensembles of all points.
template <typename Read>
Results ensembles(Run run, const std::string& title, const std::vector<ListPoint>& points, const Read& read) {
  const auto setups = read_setups(run, points, read);
  std::optional<EnsembleTables> tables;
  EnsemblePictures pictures;
  std::vector<json> summaries;
  for (std::size_t k = 0; k < points.size(); ++k) {
    const ListPoint& point = points[k];
    const CovarianceEnsemble ensemble = sampled(setups[k], run.control);
    if (k == 0) {
      tables.emplace(point, ensemble.tokens());
      pictures.begin(ensemble);
      run.results.shapes = shapes_of(ensemble, points.size());
    }
    tables->add(point, ensemble, run.control.with_trajectories);
    // Of the paths that ran to the end, or of all where none did.
    std::vector<Index> paths = ensemble.running_paths(last_time(ensemble));
    if (paths.empty()) paths = ensemble.stopped_paths(last_time(ensemble));
    pictures.add(ensemble, paths, {.name = point.label(), .colour = static_cast<int>(k) + 1});
    if (ensemble.tokens() > 1)
      pictures.correlations.samples.push_back(mean_correlations(point.label(), ensemble));
    warn_of_stopped(run, point.named("paths"), ensemble);
    summaries.push_back(ensemble_counts(ensemble));
    summaries.back().update(point.json());
    if (run.control.show) run.control.show(summaries.back());
  }
  run.results.summary = summary_of(std::move(summaries));
  run.results.tables = {{"quantiles", std::move(tables->quantiles)},
                        {"means", std::move(tables->means)},
                        {"correlations", std::move(tables->correlations)},
                        {"samples", std::move(tables->samples)},
                        {"trajectories", std::move(tables->trajectories)}};
  pictures.finish(run.results, title);
  return std::move(run.results);
}

}  // namespace

Results simulate_experiment(ConfigReader& fields, const Control& control) {
  return ensembles({fields, control}, "Covariance SDE at the last time", read_points(fields.config()),
                   read_sde_setup);
}

Results network_experiment(ConfigReader& fields, const Control& control) {
  return ensembles({fields, control}, "Random networks at the last layer",
                   read_network_points(fields.config()), read_network_setup);
}

namespace {

/// A network and the SDE it converges to, at equal time and start.
struct ComparedSetup {
  NetworkSetup network;
  SimulationOptions limit;
};

ComparedSetup read_compared_setup(ConfigReader& fields) {
  NetworkSetup network = read_network_setup(fields);
  SimulationOptions limit = read_limit_options(fields, network);
  return {std::move(network), std::move(limit)};
}

/// Mean, median and 95 % quantile of a sample.
json estimates_of(const std::vector<double>& sample) {
  const std::vector<double> ascending = numerics::sorted(sample);
  json result{{"median", results::estimate_json(numerics::quantile(ascending, 0.5))},
              {"quantile_95", results::estimate_json(numerics::quantile(ascending, 0.95))}};
  result["mean"] = sample.size() > 1 ? results::estimate_json(numerics::mean(sample)) : json(nullptr);
  return result;
}

/// What networks and paths at one point of the lists have to say.
json compared(const Run& run, const ListPoint& point, const CovarianceEnsemble& network,
              const CovarianceEnsemble& limit) {
  json report = point.json();
  std::vector<Observable> sides[2];
  int side = 0;
  for (const auto& [what, ensemble, name] :
       {std::tuple("networks", &network, "network"), std::tuple("paths of the SDE", &limit, "sde")}) {
    warn_of_stopped(run, point.named(what), *ensemble);
    report[name] = ensemble_counts(*ensemble);
  }
  for (const auto& [what, ensemble] :
       {std::pair("networks", &network), std::pair("paths of the SDE", &limit)}) {
    require_running("sde compare", point.named(what), *ensemble);
    sides[side++] =
        observables(*ensemble, last_time(*ensemble), ensemble->running_paths(last_time(*ensemble)));
  }
  if (!point.label().empty()) run.say(point.label() + "\n");
  for (std::size_t i = 0; i < sides[0].size(); ++i) {
    const auto &finite = sides[0][i].values, &theory = sides[1][i].values;
    const std::string& name = sides[0][i].name;
    const double distance = numerics::kolmogorov_smirnov_distance(finite, theory);
    const double size = numerics::two_sample_effective_size(finite.size(), theory.size());
    const double p = numerics::kolmogorov_smirnov_p_value(distance, size);
    report["kolmogorov_smirnov"][name] = {{"distance", distance}, {"p_value", p}};
    report["estimates"][name] = {{"network", estimates_of(finite)}, {"sde", estimates_of(theory)}};
    run.say(fmt::format("{:<20} KS {:.4f}  p = {:.3f}\n", name, distance, p));
  }
  return report;
}

/// The 95 % quantile of |rho01| over gammas, networks with their errors beside the SDE.
Picture quantile_picture(const std::vector<ListPoint>& points, const std::vector<json>& reports) {
  LinePlot plot{.title = "95 % quantile of the absolute correlation of the first two tokens",
                .x_label = "residual weight gamma",
                .y_label = "95 % quantile of |correlation|"};
  for (std::size_t k = 0; k < points.size(); ++k) {
    const auto temperature = points[k].temperature;
    if (k == 0 || temperature != points[k - 1].temperature) {
      const std::string of = temperature ? fmt::format(", temperature {:g}", *temperature) : "";
      plot.samples.push_back({"networks" + of});
      plot.curves.push_back({"SDE" + of, {}});
    }
    if (plot.samples.size() == 1) plot.x.push_back(*points[k].gamma);
    const json& estimates = reports[k].at("estimates").at("abs_rho01");
    const json& network = estimates.at("network").at("quantile_95");
    plot.samples.back().add_with_error(network.at("value"), network.at("standard_error"));
    plot.curves.back().values.push_back(estimates.at("sde").at("quantile_95").at("value"));
  }
  return lines_picture(plot);
}

}  // namespace

Results compare_experiment(ConfigReader& fields, const Control& control) {
  Run run(fields, control);
  const std::vector<ListPoint> points = read_points(run.config);
  std::vector<ComparedSetup> setups;
  for (const ListPoint& point : points) setups.push_back(run.read(point.config, read_compared_setup));
  run.results.origin.seed = setups.front().limit.seed;
  const Index tokens = setups.front().network.v0.rows();
  std::vector<json> reports;
  EnsemblePictures pictures;
  std::vector<results::Column> columns = correlation_columns();
  columns.insert(columns.begin(), {.name = "source"});
  Table& correlations = run.results.tables["correlations"] = points.front().table(columns);
  for (std::size_t k = 0; k < points.size(); ++k) {
    const ListPoint& point = points[k];
    const NetworkSetup& setup = setups[k].network;
    const CovarianceEnsemble network = sampled(setup, control);
    SimulationOptions options = setups[k].limit;
    options.times = network.times();
    const CovarianceEnsemble limit =
        sampled(SdeSetup{limiting_model(setup.network), setup.v0, options}, control);
    if (k == 0) {
      run.results.shapes = shapes_of(limit, points.size());
      pictures.begin(network);
    }
    reports.push_back(compared(run, point, network, limit));
    const std::string label = point.label().empty() ? "" : ", " + point.label();
    const Table cells = point.cells();
    for (const auto& [name, source, ensemble, dashed] :
         {std::tuple("networks" + label, "network", &network, false),
          std::tuple("SDE" + label, "sde", &limit, true)}) {
      add_correlations(correlations, *ensemble, cells, source);
      pictures.add(*ensemble, ensemble->running_paths(last_time(*ensemble)),
                   {.name = name, .colour = static_cast<int>(k) + 1, .dashed = dashed});
    }
    if (tokens < 2) continue;
    pictures.correlations.samples.push_back(mean_correlations("networks" + label, network));
    pictures.correlations.curves.push_back({"SDE" + label, mean_correlations("", limit).values});
  }
  pictures.finish(run.results, "Random networks and the SDE at the last layer");
  const bool over_gammas =
      tokens > 1 && points.size() > 1 && points[0].gamma && points[0].gamma != points[1].gamma;
  run.results.pictures.emplace_back([=]() -> std::optional<Picture> {
    return over_gammas ? std::optional(quantile_picture(points, reports)) : std::nullopt;
  });
  run.results.summary = summary_of(std::move(reports));
  return std::move(run.results);
}

}  // namespace widelimit::covariance_sde
