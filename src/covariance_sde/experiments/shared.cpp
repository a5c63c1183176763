#include "covariance_sde/experiments/shared.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "widelimit/error.hpp"
#include "widelimit/numerics/statistics.hpp"

namespace widelimit::covariance_sde {

namespace {

/// Options with the threads, the stop and the progress of a part of this name.
template <typename Options>
void steer(Options& options, const Control& control, const std::string& part) {
  RunControl run = control.part(part);
  options.threads = run.threads;
  options.stop = std::move(run.stop);
  options.progress = std::move(run.progress);
}

}  // namespace

CovarianceEnsemble sampled(SdeSetup setup, const Control& control) {
  steer(setup.options, control, "paths");
  return simulate(setup.model, setup.v0, setup.options);
}

CovarianceEnsemble sampled(NetworkSetup setup, const Control& control) {
  static std::string said;
  if (!setup.why_explicit.empty() && setup.why_explicit != said && control.notice)
    control.notice("widelimit: sampling: explicit_weights, because " + (said = setup.why_explicit));
  steer(setup.options, control, "networks");
  return sample_networks(setup.network, setup.v0, setup.options);
}

Index last_time(const CovarianceEnsemble& ensemble) {
  return static_cast<Index>(ensemble.times().size()) - 1;
}

const char* end_name(PathEnd end) {
  constexpr const char* names[] = {"horizon", "above", "below", "not_finite"};
  return names[static_cast<std::size_t>(end)];
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

nlohmann::ordered_json shape_of(const Matrix<double>& v0) { return {{"V0", {v0.rows(), v0.cols()}}}; }

namespace {

/// Of a count: "12 %", never in powers of ten.
std::string percent_of(Index part, Index whole) {
  const double percent = 100 * static_cast<double>(part) / static_cast<double>(whole);
  return percent < 0.01 ? "less than 0.01 %" : fmt::format("{:.3g} %", percent);
}

/// What became of the paths that did not run to the horizon: "3 of 100 paths (3 %) left the bounds of the eigenvalues
/// before the horizon". Empty if all did.
std::string what_stopped(const std::string& what, const CovarianceEnsemble& ensemble) {
  const Index paths = ensemble.paths(), infinite = ensemble.count(PathEnd::not_finite),
              left = ensemble.count(PathEnd::above) + ensemble.count(PathEnd::below);
  std::string text;
  if (left > 0)
    text = fmt::format("{} of {} {} ({}) left the bounds of the eigenvalues", left, paths, what,
                       percent_of(left, paths));
  if (infinite > 0 && left > 0)
    text += fmt::format(" and {} ({}) became not finite", infinite, percent_of(infinite, paths));
  else if (infinite > 0)
    text =
        fmt::format("{} of {} {} ({}) became not finite", infinite, paths, what, percent_of(infinite, paths));
  return text.empty() ? text : text + " before the horizon";
}

}  // namespace

void warn_of_stopped(const Run& run, const std::string& what, const CovarianceEnsemble& ensemble) {
  const std::string stopped = what_stopped(what, ensemble);
  if (!stopped.empty()) run.warn(stopped + "; they are reported apart, in their last state inside");
}

void require_running(const std::string& command, const std::string& what,
                     const CovarianceEnsemble& ensemble) {
  if (ensemble.running_paths(last_time(ensemble)).empty())
    throw NumericalError(fmt::format("{}: {}; take an earlier one", command, what_stopped(what, ensemble)));
}

Picture lines_picture(const LinePlot& plot) {
  Panel panel{.title = plot.title,
              .x = {.label = plot.x_label},
              .y = {.label = plot.y_label},
              .legend = Legend::outside,
              .grid = true,
              .margin = 0.03};
  const bool joined = plot.curves.empty();
  for (const PointBars& one : plot.samples)
    panel.series.push_back({.draw = joined ? Draw::joined_bars : Draw::bars,
                            .columns = {plot.x, one.values, one.lower, one.upper},
                            .name = one.name,
                            .colour = static_cast<int>(panel.series.size()) + 1,
                            .width = joined ? 2.0 : 1.0,
                            .size = 0.8});
  int colour = 0;
  for (const Observable& curve : plot.curves) {
    Series series{
        .columns = {plot.x, curve.values}, .name = curve.name, .colour = ++colour, .width = 2, .size = 0.6};
    if (plot.samples.empty()) series.draw = Draw::line_points;
    // A line through one place would not be seen.
    else if (plot.x.size() == 1) {
      series.draw = Draw::points;
      series.mark = 4;
      series.size = 1.8;
    }
    panel.series.push_back(std::move(series));
  }
  return {.panels = {std::move(panel)}};
}

namespace {

constexpr int density_points = 400;
constexpr double tail_bandwidths = 4;  // beyond which a kernel is not seen

bool is_constant(const std::vector<double>& ascending) { return ascending.front() == ascending.back(); }

/// Kernels are reflected at the ends of the quantity's range, beyond which nothing is.
std::vector<std::vector<double>> density_columns(const std::vector<double>& sample, const DensityPanel& panel,
                                                 double from, double to) {
  const std::vector<double> ascending = numerics::sorted(sample);
  if (is_constant(ascending)) return {{ascending.front()}, {0}};
  std::vector<std::vector<double>> columns(2);
  const numerics::KernelDensity density(sample);
  for (int i = 0; i <= density_points; ++i) {
    const double x = from + (to - from) * i / density_points;
    double y = density(x);
    if (std::isfinite(panel.lowest)) y += density(2 * panel.lowest - x);
    if (std::isfinite(panel.highest)) y += density(2 * panel.highest - x);
    columns[0].push_back(x);
    columns[1].push_back(y);
  }
  return columns;
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

}  // namespace

Picture densities_picture(const std::string& title, const std::vector<DensityPanel>& panels) {
  Picture picture{
      .panels = {}, .width = 520 * static_cast<int>(panels.size()), .height = 500, .title = title};
  for (const DensityPanel& given : panels) {
    const auto [from, to] = plotted_range(given);
    Panel panel{.x = {.label = given.quantity}, .y = {.label = "density", .from = 0}, .grid = true};
    if (to > from) {
      panel.x.from = from;
      panel.x.to = to;
    }
    for (const DensityCurve& curve : given.curves)
      panel.series.push_back({.columns = density_columns(curve.values, given, from, to),
                              .name = curve.name,
                              .colour = curve.colour,
                              .width = 2,
                              .dash = curve.dashed ? 2 : 1});
    picture.panels.push_back(std::move(panel));
  }
  return picture;
}

}  // namespace widelimit::covariance_sde
