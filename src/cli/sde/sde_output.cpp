#include "cli/sde/sde_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "cli/plots/gnuplot.hpp"
#include "widelimit/numerics/statistics.hpp"

namespace widelimit::cli {

using covariance_sde::CovarianceEnsemble;

namespace {

constexpr Index most_tokens_listed = 4;
constexpr int density_points = 400;
constexpr double tail_bandwidths = 4;  // beyond which a kernel is not seen

bool is_constant(const std::vector<double>& ascending) { return ascending.front() == ascending.back(); }

/// Kernels are reflected at the ends of the quantity's range, beyond which nothing is.
void append_density(std::string& script, const std::vector<double>& sample, const DensityPanel& panel,
                    double from, double to) {
  const std::vector<double> ascending = numerics::sorted(sample);
  if (is_constant(ascending)) {
    fmt::format_to(std::back_inserter(script), "{} 0\n", ascending.front());
    return;
  }
  const numerics::KernelDensity density(sample);
  for (int i = 0; i <= density_points; ++i) {
    const double x = from + (to - from) * i / density_points;
    double y = density(x);
    if (std::isfinite(panel.lowest)) y += density(2 * panel.lowest - x);
    if (std::isfinite(panel.highest)) y += density(2 * panel.highest - x);
    fmt::format_to(std::back_inserter(script), "{} {}\n", x, y);
  }
}

std::pair<double, double> plotted_range(const DensityPanel& panel) {
  double from = HUGE_VAL, to = -HUGE_VAL;
  for (const DensityCurve& curve : panel.curves) {
    const std::vector<double> ascending = numerics::sorted(curve.values);
    const auto at = [&](double p) { return numerics::quantile(ascending, p).value; };
    const double margin = 4 * (at(0.75) - at(0.25));
    const double tail =
        is_constant(ascending) ? 0 : tail_bandwidths * numerics::KernelDensity(curve.values).bandwidth();
    from = std::min(from, std::max(ascending.front() - tail, at(0.25) - margin));
    to = std::max(to, std::min(ascending.back() + tail, at(0.75) + margin));
  }
  return {std::max(from, panel.lowest), std::min(to, panel.highest)};
}

std::vector<double> magnitudes(std::vector<double> values) {
  for (double& x : values) x = std::abs(x);
  return values;
}

std::string panel_canvas(std::size_t panels) {
  return gnuplot_canvas(520 * static_cast<int>(panels), 500) + "set grid\n";
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

std::string densities_script(const std::string& title, const std::vector<DensityPanel>& panels) {
  std::string script = panel_canvas(panels.size());
  std::string plots = fmt::format("set multiplot layout 1,{} title {}\nset ylabel 'density'\n", panels.size(),
                                  gnuplot_quoted(title));
  int block = 0;
  for (const DensityPanel& panel : panels) {
    const auto [from, to] = plotted_range(panel);
    plots += fmt::format("set xlabel {}\n", gnuplot_quoted(panel.quantity));
    if (to > from) plots += fmt::format("set xrange [{}:{}]\n", from, to);
    plots += "plot [] [0:*] ";
    for (const DensityCurve& curve : panel.curves) {
      script += fmt::format("$d{} << end\n", block);
      append_density(script, curve.values, panel, from, to);
      script += "end\n";
      plots += fmt::format("$d{} using 1:2 with lines lw 2 lc {} dt {} {}, ", block++, curve.colour,
                           curve.dashed ? 2 : 1,
                           curve.name.empty() ? "notitle" : "title " + gnuplot_quoted(curve.name));
    }
    plots += "\nset autoscale x\n";
  }
  return script + plots + "unset multiplot\n";
}

std::vector<DensityPanel> covariance_panels(Index tokens) {
  std::vector<DensityPanel> panels{{"variance of the first token, V00", {}, 0}};
  if (tokens < 2) return panels;
  panels.push_back({"covariance of the first two tokens, V01", {}});
  panels.push_back({"correlation of the first two tokens", {}, -1, 1});
  return panels;
}

void add_covariance_curves(std::vector<DensityPanel>& panels, const CovarianceEnsemble& ensemble, Index time,
                           const std::vector<Index>& paths, const DensityCurve& style) {
  const auto chosen = [&](const std::vector<double>& values) {
    DensityCurve curve = style;
    for (const Index path : paths) curve.values.push_back(values[static_cast<std::size_t>(path)]);
    return curve;
  };
  panels[0].curves.push_back(chosen(ensemble.entries(time, 0, 0)));
  if (panels.size() < 2) return;
  panels[1].curves.push_back(chosen(ensemble.entries(time, 0, 1)));
  panels[2].curves.push_back(chosen(ensemble.correlations(time, 0, 1)));
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
  std::string script =
                  gnuplot_canvas(760, 480) +
                  fmt::format(
                      "set grid\nset key outside\nset autoscale xfix\nset offsets graph 0.03, graph "
                      "0.03\nset title {}\nset xlabel {}\nset ylabel {}\n",
                      gnuplot_quoted(plot.title), gnuplot_quoted(plot.x_label), gnuplot_quoted(plot.y_label)),
              commands = "plot ";
  const char* joined = plot.curves.empty() ? "yerrorlines lw 2" : "yerrorbars";
  for (std::size_t k = 0; k < plot.samples.size(); ++k) {
    script += samples_block(k, plot.x, plot.samples[k]);
    commands += fmt::format(
        "$s{} with {} pt 7 ps 0.8 lc {} {}, ", k, joined, k + 1,
        plot.samples[k].name.empty() ? "notitle" : "title " + gnuplot_quoted(plot.samples[k].name));
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
