#include "cli/sde_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "cli/gnuplot.hpp"
#include "widelimit/numerics/statistics.hpp"

namespace widelimit::cli {

using covariance_sde::CovarianceEnsemble;
using covariance_sde::PathEnd;

namespace {

constexpr Index most_tokens_listed = 4;
constexpr double probabilities[] = {0.05, 0.25, 0.5, 0.75, 0.95};
constexpr int density_points = 200;

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

void append_quantiles(std::string& text, const CovarianceEnsemble& ensemble, Index time, const char* group,
                      const std::vector<Index>& paths) {
  if (paths.empty()) return;
  for (const Observable& observable : observables(ensemble, time, paths)) {
    const std::vector<double> ascending = numerics::sorted(observable.values);
    for (const double p : probabilities) {
      const numerics::Estimate quantile = numerics::quantile(ascending, p);
      fmt::format_to(std::back_inserter(text), "{},{},{},{:.10g},{:.3g},{},{}\n",
                     ensemble.times()[static_cast<std::size_t>(time)], observable.name, p, quantile.value,
                     quantile.standard_error, group, paths.size());
    }
  }
}

std::string quantiles_csv(const CovarianceEnsemble& ensemble) {
  std::string text = "time,observable,probability,quantile,standard_error,paths,count\n";
  for (Index time = 0; time < static_cast<Index>(ensemble.times().size()); ++time) {
    append_quantiles(text, ensemble, time, "running", ensemble.running_paths(time));
    append_quantiles(text, ensemble, time, "stopped", ensemble.stopped_paths(time));
  }
  return text;
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

std::string samples_csv(const CovarianceEnsemble& ensemble) {
  std::string text = "path,end,stop_time,cone_exits" + entry_names(ensemble.tokens());
  const Index last = static_cast<Index>(ensemble.times().size()) - 1;
  for (Index path = 0; path < ensemble.paths(); ++path) {
    const auto& outcome = ensemble.outcome(path);
    fmt::format_to(std::back_inserter(text), "{},{},{},{}", path, end_name(outcome.end), outcome.stop_time,
                   outcome.cone_exits);
    append_entries(text, ensemble.covariance(last, path));
  }
  return text;
}

std::string trajectories_csv(const CovarianceEnsemble& ensemble) {
  std::string text = "path,time,paths" + entry_names(ensemble.tokens());
  for (Index path = 0; path < ensemble.paths(); ++path)
    for (Index time = 0; time < static_cast<Index>(ensemble.times().size()); ++time) {
      fmt::format_to(std::back_inserter(text), "{},{},{}", path,
                     ensemble.times()[static_cast<std::size_t>(time)],
                     ensemble.running(time, path) ? "running" : "stopped");
      append_entries(text, ensemble.covariance(time, path));
    }
  return text;
}

void append_density(std::string& script, const std::vector<double>& sample, double from, double to) {
  const std::vector<double> ascending = numerics::sorted(sample);
  if (ascending.front() == ascending.back()) {
    fmt::format_to(std::back_inserter(script), "{} 0\n", ascending.front());
    return;
  }
  const numerics::KernelDensity density(sample);
  for (int i = 0; i <= density_points; ++i) {
    const double x = from + (to - from) * i / density_points;
    fmt::format_to(std::back_inserter(script), "{} {}\n", x, density(x));
  }
}

/// Heavy tails would leave a spike of what most paths do.
std::pair<double, double> plotted_range(const DensityPanel& panel) {
  double from = HUGE_VAL, to = -HUGE_VAL;
  for (const Observable& curve : panel.curves) {
    const std::vector<double> ascending = numerics::sorted(curve.values);
    const auto at = [&](double p) { return numerics::quantile(ascending, p).value; };
    const double margin = 3 * (at(0.75) - at(0.25));
    from = std::min(from, std::max(at(0.005), at(0.25) - margin));
    to = std::max(to, std::min(at(0.995), at(0.75) + margin));
  }
  return {from, to};
}

std::string panel_canvas(std::size_t panels) {
  return gnuplot_canvas(520 * static_cast<int>(panels), 480) + "set grid\n";
}

}  // namespace

std::vector<Observable> observables(const CovarianceEnsemble& ensemble, Index time,
                                    const std::vector<Index>& paths) {
  std::vector<Observable> result;
  const auto add = [&](std::string name, const std::vector<double>& values) {
    Observable observable{std::move(name), {}};
    for (const Index path : paths) observable.values.push_back(values[static_cast<std::size_t>(path)]);
    result.push_back(std::move(observable));
  };
  const Index m = std::min(ensemble.tokens(), most_tokens_listed);
  for (Index a = 0; a < m; ++a)
    for (Index b = a; b < m; ++b) {
      add(fmt::format("V{}{}", a, b), ensemble.entries(time, a, b));
      if (b > a) add(fmt::format("rho{}{}", a, b), ensemble.correlations(time, a, b));
    }
  add("largest_eigenvalue", ensemble.largest_eigenvalues(time));
  return result;
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

std::vector<std::string> ensemble_file_names(SampleTimes times) {
  std::vector<std::string> names{"quantiles.csv", "samples.csv", "summary.json"};
  if (times == SampleTimes::all) names.push_back("trajectories.csv");
  return names;
}

void write_ensemble(OutputFolder& folder, const CovarianceEnsemble& ensemble, SampleTimes times,
                    const Origin& origin) {
  const std::string comment = origin_comment(origin);
  folder.write("quantiles.csv", comment + quantiles_csv(ensemble));
  folder.write("samples.csv", comment + samples_csv(ensemble));
  if (times == SampleTimes::all) folder.write("trajectories.csv", comment + trajectories_csv(ensemble));
  nlohmann::json summary = ensemble_counts(ensemble);
  summary["origin"] = origin_json(origin);
  folder.write("summary.json", summary.dump(2) + "\n");
}

std::string densities_script(const std::vector<DensityPanel>& panels) {
  std::string script = panel_canvas(panels.size());
  std::string plots = fmt::format("set multiplot layout 1,{}\nset ylabel 'density'\n", panels.size());
  int block = 0;
  for (const DensityPanel& panel : panels) {
    const auto [from, to] = plotted_range(panel);
    plots += fmt::format("set xlabel {}\nplot ", gnuplot_quoted(panel.quantity));
    for (const Observable& curve : panel.curves) {
      script += fmt::format("$d{} << end\n", block);
      append_density(script, curve.values, from, to);
      script += "end\n";
      plots += fmt::format("$d{} using 1:2 with lines lw 2 title {}, ", block++, gnuplot_quoted(curve.name));
    }
    plots += "\n";
  }
  return script + plots + "unset multiplot\n";
}

namespace {

std::string samples_block(std::size_t k, const std::vector<double>& x, const PointBars& samples) {
  std::string block = fmt::format("$s{} << end\n", k);
  for (std::size_t i = 0; i < x.size(); ++i)
    fmt::format_to(std::back_inserter(block), "{} {} {} {}\n", x[i], samples.values[i], samples.lower[i],
                   samples.upper[i]);
  return block + "end\n";
}

std::string curve_block(std::size_t k, const std::vector<double>& x, const Observable& curve) {
  std::string block = fmt::format("$d{} << end\n", k);
  for (std::size_t i = 0; i < x.size(); ++i)
    fmt::format_to(std::back_inserter(block), "{} {}\n", x[i], curve.values[i]);
  return block + "end\n";
}

}  // namespace

std::string lines_script(const LinePlot& plot) {
  std::string script = gnuplot_canvas(760, 480) +
                       fmt::format(
                           "set grid\nset key outside\nset autoscale xfix\nset offsets graph 0.03, graph "
                           "0.03\nset xlabel {}\nset ylabel {}\n",
                           gnuplot_quoted(plot.x_label), gnuplot_quoted(plot.y_label)),
              commands = "plot ";
  const char* joined = plot.curves.empty() ? "yerrorlines lw 2" : "yerrorbars";
  for (std::size_t k = 0; k < plot.samples.size(); ++k) {
    script += samples_block(k, plot.x, plot.samples[k]);
    commands += fmt::format("$s{} with {} pt 7 ps 0.8 lc {} title {}, ", k, joined, k + 1,
                            gnuplot_quoted(plot.samples[k].name));
  }
  // A line through one place would not be seen.
  const char* style = plot.samples.empty() ? "linespoints pt 7 ps 0.6"
                      : plot.x.size() == 1 ? "points pt 4 ps 1.8"
                                           : "lines";
  for (std::size_t k = 0; k < plot.curves.size(); ++k) {
    script += curve_block(k, plot.x, plot.curves[k]);
    commands += fmt::format("$d{} using 1:2 with {} lw 2 lc {} title {}, ", k, style, k + 1,
                            gnuplot_quoted(plot.curves[k].name));
  }
  return script + commands + "\n";
}

}  // namespace widelimit::cli
