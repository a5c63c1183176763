#include <fmt/format.h>

#include <iterator>

#include "cli/sde/sde_run.hpp"
#include "widelimit/numerics/statistics.hpp"

namespace widelimit::cli {

using namespace covariance_sde;
using nlohmann::json;

namespace {

/// Medians and 10 % quantiles over residual weights and temperatures.
struct StoppingGrid {
  std::vector<double> gammas, temperatures;
  json rows = json::array();
  std::vector<double> medians, early;  ///< [temperature][gamma]
  double horizon = 0;                  ///< Where every path ends.
};

void append_point(StoppingGrid& grid, double gamma, double temperature, const CovarianceEnsemble& ensemble) {
  std::vector<double> times;
  times.reserve(static_cast<std::size_t>(ensemble.paths()));
  for (Index path = 0; path < ensemble.paths(); ++path)
    times.push_back(ensemble.outcome(path).last_inside_time);
  const std::vector<double> ascending = numerics::sorted(times);
  json row{{"gamma", gamma}, {"temperature", temperature}, {"counts", ensemble_counts(ensemble)}};
  for (const double p : {0.1, 0.5, 0.9})
    row["quantiles"].push_back({{"p", p}, {"time", numerics::quantile(ascending, p).value}});
  grid.horizon = ensemble.times().back();
  grid.rows.push_back(std::move(row));
  grid.medians.push_back(numerics::quantile(ascending, 0.5).value);
  grid.early.push_back(numerics::quantile(ascending, 0.1).value);
  say("gamma {:<8g} temperature {:<8g} median {:.4f}  10 % {:.4f}\n", gamma, temperature, grid.medians.back(),
      grid.early.back());
}

/// Medians in colour where both vary, else lines over the one that does.
std::string stopping_script(const StoppingGrid& grid) {
  if (grid.gammas.size() == 1 || grid.temperatures.size() == 1) {
    const bool over_gamma = grid.temperatures.size() == 1;
    return lines_script(
        {.title = "When eigenvalues of V leave their bounds",
         .x_label = over_gamma ? "residual weight gamma" : "temperature",
         .y_label = "stopping time, layers over width",
         .x = over_gamma ? grid.gammas : grid.temperatures,
         .curves = {{"median of networks", grid.medians}, {"first tenth of networks", grid.early}}});
  }
  // Evenly spaced cells, whatever the values are.
  const auto labels = [](const std::vector<double>& values) {
    std::string text;
    for (std::size_t i = 0; i < values.size(); ++i)
      fmt::format_to(std::back_inserter(text), "{}'{:g}' {}", i == 0 ? "" : ", ", values[i], i);
    return text;
  };
  std::string script = gnuplot_canvas(760, 560) + "$grid << end\n", censored = "$censored << end\n";
  for (std::size_t row = 0; row < grid.temperatures.size(); ++row)
    for (std::size_t column = 0; column < grid.gammas.size(); ++column) {
      const double median = grid.medians[row * grid.gammas.size() + column];
      fmt::format_to(std::back_inserter(script), "{} {} {}\n", column, row, median);
      // At the horizon the median is of paths that had not stopped.
      if (!(median < grid.horizon))
        fmt::format_to(std::back_inserter(censored), "{} {} >{:g}\n", column, row, median);
    }
  return script + "end\n" + censored +
         fmt::format(
             "-1 -1 nan\nend\nset title 'When eigenvalues of V leave their bounds'\nset xlabel 'residual "
             "weight "
             "gamma'\nset ylabel 'temperature'\nset cblabel 'median stopping time, layers over width'\n"
             "set xtics ({})\nset ytics ({})\nset xrange [-0.5:{}]\nset yrange [-0.5:{}]\nset cbrange [0:*]\n"
             "set palette defined (0 '#440154', 1 '#21918c', 2 '#fde725')\nplot $grid with image notitle, "
             "$censored using 1:2:3 with labels notitle\n",
             labels(grid.gammas), labels(grid.temperatures), static_cast<double>(grid.gammas.size()) - 0.5,
             static_cast<double>(grid.temperatures.size()) - 0.5);
}

/// The grid of the configuration, which is left with its first point.
StoppingGrid take_grid(json& config) {
  StoppingGrid grid;
  grid.gammas = take_gammas(config);
  grid.temperatures = take_temperatures(config);
  return grid;
}

}  // namespace

void run_sde_stopping_time(const SdeArguments& arguments, const RunContext& context) {
  SdeRun run(arguments, context, "stopping-time", {"stopping_times.json"}, {"stopping_times.png"});
  json config = run.config;
  StoppingGrid grid = run.with_config([&] { return take_grid(config); });
  NetworkSetup setup = run.with_config([&] {
    NetworkSetup read = run.read_setup(config, read_network_setup);
    if (!grid.temperatures.empty() && !read.network.attention)
      run.reader(config).fail("temperatures", "the network has no attention block");
    return read;
  });
  const bool shaped = !grid.gammas.empty();
  if (!shaped) grid.gammas.push_back(setup.network.residual.gamma());
  if (grid.temperatures.empty())
    grid.temperatures.push_back(setup.network.attention ? setup.network.attention->temperature : 1);
  for (const double temperature : grid.temperatures)
    for (const double gamma : grid.gammas) {
      if (shaped) setup.network.residual = ResidualWeights::shaped(gamma * gamma);
      if (setup.network.attention) setup.network.attention->temperature = temperature;
      append_point(grid, gamma, temperature, run.with_config([&] { return sampled_ensemble(setup); }));
    }
  run.write_report("stopping_times.json", {{"stopping_times", grid.rows}});
  run.finish({{"V0", {setup.v0.rows(), setup.v0.cols()}},
              {"gammas", grid.gammas.size()},
              {"temperatures", grid.temperatures.size()},
              {"networks", setup.options.samples}},
             {[&] { return stopping_script(grid); }});
}

}  // namespace widelimit::cli
