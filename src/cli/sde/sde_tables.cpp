#include "cli/sde/sde_tables.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <limits>

#include "widelimit/numerics/statistics.hpp"

namespace widelimit::cli {

using covariance_sde::CovarianceEnsemble;
using covariance_sde::PathEnd;
using numerics::Estimate;

namespace {

constexpr double table_probabilities[] = {0.05, 0.25, 0.5, 0.75, 0.95};

const char* end_name(PathEnd end) {
  switch (end) {
    case PathEnd::horizon:
      return "horizon";
    case PathEnd::above:
      return "above";
    case PathEnd::below:
      return "below";
    case PathEnd::not_finite:
      return "not_finite";
  }
  return "";
}

Index times_of(const CovarianceEnsemble& ensemble) { return static_cast<Index>(ensemble.times().size()); }

double time_at(const CovarianceEnsemble& ensemble, Index time) {
  return ensemble.times()[static_cast<std::size_t>(time)];
}

/// The mean of one value has no standard error.
Estimate mean_of(const std::vector<double>& values) {
  if (values.size() == 1) return {values.front(), std::numeric_limits<double>::quiet_NaN()};
  return numerics::mean(values);
}

/// The paths of a group at one time, and what they have to say.
struct PathGroup {
  const char* name;
  std::string cells;  ///< Of the point and the time.
  std::size_t count = 0;
  std::vector<Observable> observables;
};

PathGroup group_of(const char* name, const std::string& cells, const CovarianceEnsemble& ensemble, Index time,
                   const std::vector<Index>& paths) {
  return {name, fmt::format("{}{}", cells, time_at(ensemble, time)), paths.size(),
          paths.empty() ? std::vector<Observable>() : observables(ensemble, time, paths)};
}

void append_quantiles(std::string& text, const PathGroup& group) {
  for (const Observable& observable : group.observables) {
    const std::vector<double> ascending = numerics::sorted(observable.values);
    for (const double p : table_probabilities) {
      const Estimate quantile = numerics::quantile(ascending, p);
      fmt::format_to(std::back_inserter(text), "{},{},{},{:.10g},{:.3g},{},{}\n", group.cells,
                     observable.name, p, quantile.value, quantile.standard_error, group.name, group.count);
    }
  }
}

void append_means(std::string& text, const PathGroup& group) {
  for (const Observable& observable : group.observables) {
    const Estimate mean = mean_of(observable.values);
    fmt::format_to(std::back_inserter(text), "{},{},{:.10g},{:.3g},{}\n", group.cells, observable.name,
                   mean.value, mean.standard_error, group.count);
  }
}

/// ",V0_0,V0_1,...": the entries on and above the diagonal.
std::string entry_names(Index tokens) {
  std::string names;
  for (Index a = 0; a < tokens; ++a)
    for (Index b = a; b < tokens; ++b) fmt::format_to(std::back_inserter(names), ",V{}_{}", a, b);
  return names + "\n";
}

void append_entries(std::string& text, const Matrix<double>& v) {
  for (Index a = 0; a < v.rows(); ++a)
    for (Index b = a; b < v.cols(); ++b) fmt::format_to(std::back_inserter(text), ",{:.17g}", v(a, b));
  text += '\n';
}

void append_samples(std::string& text, const std::string& cells, const CovarianceEnsemble& ensemble) {
  const Index last = times_of(ensemble) - 1;
  for (Index path = 0; path < ensemble.paths(); ++path) {
    const auto& outcome = ensemble.outcome(path);
    fmt::format_to(std::back_inserter(text), "{}{},{},{},{}", cells, path, end_name(outcome.end),
                   outcome.stop_time, outcome.cone_exits);
    append_entries(text, ensemble.covariance(last, path));
  }
}

void append_trajectories(std::string& text, const std::string& cells, const CovarianceEnsemble& ensemble) {
  for (Index path = 0; path < ensemble.paths(); ++path)
    for (Index time = 0; time < times_of(ensemble); ++time) {
      fmt::format_to(std::back_inserter(text), "{}{},{},{}", cells, path, time_at(ensemble, time),
                     ensemble.running(time, path) ? "running" : "stopped");
      append_entries(text, ensemble.covariance(time, path));
    }
}

std::vector<double> of_paths(const std::vector<double>& values, const std::vector<Index>& paths) {
  std::vector<double> chosen;
  for (const Index path : paths) chosen.push_back(values[static_cast<std::size_t>(path)]);
  return chosen;
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

}  // namespace

std::vector<std::string> ensemble_file_names(SampleTimes times) {
  std::vector<std::string> names{"quantiles.csv", "means.csv", "correlations.csv", "samples.csv",
                                 "summary.json"};
  if (times == SampleTimes::all) names.push_back("trajectories.csv");
  return names;
}

void EnsembleTables::append(const SdePoint& point, const CovarianceEnsemble& ensemble) {
  if (points_.empty()) {
    const std::string columns = point.columns(), names = entry_names(ensemble.tokens());
    quantiles_ = columns + "time,observable,probability,quantile,standard_error,paths,count\n";
    means_ = columns + "time,observable,mean,standard_error,count\n";
    correlations_ = columns + correlation_columns();
    samples_ = columns + "path,end,stop_time,cone_exits" + names;
    trajectories_ = columns + "path,time,paths" + names;
  }
  const std::string cells = point.cells();
  for (Index time = 0; time < times_of(ensemble); ++time) {
    const PathGroup running = group_of("running", cells, ensemble, time, ensemble.running_paths(time));
    append_quantiles(quantiles_, running);
    append_quantiles(quantiles_, group_of("stopped", cells, ensemble, time, ensemble.stopped_paths(time)));
    append_means(means_, running);
  }
  correlations_ += correlation_rows(cells, ensemble);
  append_samples(samples_, cells, ensemble);
  if (times_ == SampleTimes::all) append_trajectories(trajectories_, cells, ensemble);
  nlohmann::json counts = ensemble_counts(ensemble);
  counts.update(point.json());
  points_.push_back(std::move(counts));
}

nlohmann::json EnsembleTables::summary() const {
  if (points_.size() == 1) return points_.front();
  return {{"points", points_}};
}

void EnsembleTables::write(OutputFolder& folder, const Origin& origin) const {
  const std::string comment = origin_comment(origin);
  folder.write("quantiles.csv", comment + quantiles_);
  folder.write("means.csv", comment + means_);
  folder.write("correlations.csv", comment + correlations_);
  folder.write("samples.csv", comment + samples_);
  if (times_ == SampleTimes::all) folder.write("trajectories.csv", comment + trajectories_);
  nlohmann::json report = summary();
  report["origin"] = origin_json(origin);
  folder.write("summary.json", report.dump(2) + "\n");
}

nlohmann::json ensemble_counts(const CovarianceEnsemble& ensemble) {
  nlohmann::json counts{
      {"tokens", ensemble.tokens()}, {"paths", ensemble.paths()}, {"cone_exits", ensemble.cone_exits()}};
  for (const PathEnd end : {PathEnd::horizon, PathEnd::above, PathEnd::below, PathEnd::not_finite})
    counts["ended"][end_name(end)] = ensemble.count(end);
  counts["stopped_share"] =
      1 - static_cast<double>(ensemble.count(PathEnd::horizon)) / static_cast<double>(ensemble.paths());
  return counts;
}

std::string correlation_columns() {
  return "time,mean,mean_error,mean_abs,mean_abs_error,quantile_5,quantile_50,quantile_95,abs_quantile_95,"
         "count\n";
}

std::string correlation_rows(const std::string& cells, const CovarianceEnsemble& ensemble) {
  std::string text;
  if (ensemble.tokens() < 2) return text;
  for (Index time = 0; time < times_of(ensemble); ++time) {
    const std::vector<Index> paths = ensemble.running_paths(time);
    if (paths.empty()) continue;
    const Estimate mean = mean_of(of_paths(ensemble.mean_correlations(time), paths)),
                   magnitude = mean_of(of_paths(ensemble.mean_absolute_correlations(time), paths));
    std::vector<double> ascending = numerics::sorted(all_correlations(ensemble, time, paths));
    fmt::format_to(std::back_inserter(text), "{}{},{:.10g},{:.3g},{:.10g},{:.3g}", cells,
                   time_at(ensemble, time), mean.value, mean.standard_error, magnitude.value,
                   magnitude.standard_error);
    for (const double p : {0.05, 0.5, 0.95})
      fmt::format_to(std::back_inserter(text), ",{:.10g}", numerics::quantile(ascending, p).value);
    for (double& rho : ascending) rho = std::abs(rho);
    fmt::format_to(std::back_inserter(text), ",{:.10g},{}\n",
                   numerics::quantile(numerics::sorted(ascending), 0.95).value, paths.size());
  }
  return text;
}

PointBars mean_correlations(const std::string& name, const CovarianceEnsemble& ensemble) {
  PointBars bars{name};
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  for (Index time = 0; time < times_of(ensemble); ++time) {
    const std::vector<Index> paths = ensemble.running_paths(time);
    const Estimate mean =
        paths.empty() ? Estimate{none, none} : mean_of(of_paths(ensemble.mean_correlations(time), paths));
    const double error = std::isnan(mean.standard_error) ? 0 : mean.standard_error;
    bars.add_with_error(mean.value, error);
  }
  return bars;
}

}  // namespace widelimit::cli
