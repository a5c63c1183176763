#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <tuple>
#include <utility>

#include "cli/options/ranges.hpp"
#include "cli/output/output_options.hpp"
#include "cli/program/commands.hpp"
#include "cli/sde/sde_fields.hpp"
#include "cli/sde/sde_run.hpp"
#include "cli/sde/sde_tables.hpp"
#include "widelimit/numerics/statistics.hpp"

namespace widelimit::cli {

using namespace covariance_sde;
using numerics::Estimate;

namespace {

/// Of the paths that ran to the end, or of all where none did.
std::vector<Index> shown_paths(const CovarianceEnsemble& ensemble) {
  const std::vector<Index> running = ensemble.running_paths(last_time(ensemble));
  return running.empty() ? ensemble.stopped_paths(last_time(ensemble)) : running;
}

nlohmann::ordered_json shapes_of(const CovarianceEnsemble& ensemble, std::size_t points) {
  nlohmann::ordered_json shapes{{"V0", {ensemble.tokens(), ensemble.tokens()}},
                                {"times", ensemble.times().size()},
                                {"paths", ensemble.paths()}};
  if (points > 1) shapes["points"] = points;
  return shapes;
}

/// Lines through few points, as many as there are times. Empty where one time or one token shows nothing.
std::string correlations_script(LinePlot plot, Index tokens) {
  return tokens > 1 && plot.x.size() > 1 ? lines_script(plot) : "";
}

LinePlot correlations_plot(const std::vector<double>& times) {
  return {.title = "Correlation of tokens, mean over pairs and paths",
          .x_label = "time, layers over width",
          .y_label = "mean correlation",
          .x = times};
}

/// read_sde_points() or read_network_points().
using ReadPoints = std::vector<SdePoint> (*)(const nlohmann::json&);

/// All setups of the points of the configuration's lists: what is wrong with one shows before the work.
template <typename Setup>
struct PointSetups {
  std::vector<SdePoint> points;
  std::vector<Setup> setups;
};

template <typename Setup>
PointSetups<Setup> read_points(SdeRun& run, ReadPoints points, Setup (*read)(ConfigReader&)) {
  return run.with_config([&] {
    PointSetups<Setup> result{points(run.config), {}};
    for (const SdePoint& point : result.points)
      if (point.network)
        naming_errors(*point.network, [&] { result.setups.push_back(run.read_setup(point.config, read)); });
      else
        result.setups.push_back(run.read_setup(point.config, read));
    return result;
  });
}

/// "paths", or "paths (gamma 0.5)" of lists.
std::string named_point(const std::string& what, const SdePoint& point) {
  const std::string label = point.label();
  return label.empty() ? what : fmt::format("{} ({})", what, label);
}

/// Writes the ensembles that sample(setup) draws, the setups as `read` makes them.
template <typename Setup, typename Sample>
void run_ensemble(const SdeArguments& arguments, const RunContext& context, const char* command,
                  const char* title, ReadPoints points, Setup (*read)(ConfigReader&), const Sample& sample) {
  SdeRun run(arguments, context, command, ensemble_file_names(arguments.samples),
             {"densities.png", "correlations.png"});
  const PointSetups<Setup> all = read_points(run, points, read);
  EnsembleTables tables(arguments.samples);
  std::vector<DensityPanel> panels;
  LinePlot correlations;
  nlohmann::ordered_json shapes;
  Index tokens = 0;
  for (std::size_t k = 0; k < all.points.size(); ++k) {
    const SdePoint& point = all.points[k];
    const CovarianceEnsemble ensemble = run.with_config([&] { return sample(all.setups[k]); });
    tables.append(point, ensemble);
    if (k == 0) {
      tokens = ensemble.tokens();
      panels = covariance_panels(tokens);
      correlations = correlations_plot(ensemble.times());
      shapes = shapes_of(ensemble, all.points.size());
    }
    add_covariance_curves(panels, ensemble, last_time(ensemble), shown_paths(ensemble),
                          {.name = point.label(), .values = {}, .colour = static_cast<int>(k) + 1});
    if (tokens > 1) correlations.samples.push_back(mean_correlations(point.label(), ensemble));
    warn_of_stopped(named_point("paths", point), ensemble);
    nlohmann::json printed = point.json();
    printed.update(ensemble_counts(ensemble));
    print_result(printed);
  }
  tables.write(run.folder, run.origin);
  run.finish(shapes, {[&] { return densities_script(title, panels); },
                      [&] { return correlations_script(correlations, tokens); }});
}

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
nlohmann::json estimates_of(const std::vector<double>& sample) {
  const std::vector<double> ascending = numerics::sorted(sample);
  nlohmann::json result{{"median", estimate_json(numerics::quantile(ascending, 0.5))},
                        {"quantile_95", estimate_json(numerics::quantile(ascending, 0.95))}};
  result["mean"] = sample.size() > 1 ? estimate_json(numerics::mean(sample)) : nlohmann::json(nullptr);
  return result;
}

/// What networks and paths at one point of the lists have to say.
nlohmann::json compared(const SdePoint& point, const CovarianceEnsemble& network,
                        const CovarianceEnsemble& limit) {
  warn_of_stopped(named_point("networks", point), network);
  warn_of_stopped(named_point("paths of the SDE", point), limit);
  require_running("sde compare", named_point("networks", point), network);
  require_running("sde compare", named_point("paths of the SDE", point), limit);
  nlohmann::json report = point.json();
  report["network"] = ensemble_counts(network);
  report["sde"] = ensemble_counts(limit);
  const auto finite = observables(network, last_time(network), network.running_paths(last_time(network))),
             sampled = observables(limit, last_time(limit), limit.running_paths(last_time(limit)));
  if (!point.label().empty()) say("{}\n", point.label());
  for (std::size_t i = 0; i < finite.size(); ++i) {
    const double distance = numerics::kolmogorov_smirnov_distance(finite[i].values, sampled[i].values);
    const double size =
        numerics::two_sample_effective_size(finite[i].values.size(), sampled[i].values.size());
    const double p = numerics::kolmogorov_smirnov_p_value(distance, size);
    report["kolmogorov_smirnov"][finite[i].name] = {{"distance", distance}, {"p_value", p}};
    report["estimates"][finite[i].name] = {{"network", estimates_of(finite[i].values)},
                                           {"sde", estimates_of(sampled[i].values)}};
    say("{:<20} KS {:.4f}  p = {:.3f}\n", finite[i].name, distance, p);
  }
  return report;
}

/// The 95 % quantile of |rho01| over gammas, networks with their errors beside the SDE.
std::string quantile_script(const std::vector<SdePoint>& points, const std::vector<nlohmann::json>& reports) {
  LinePlot plot{.title = "95 % quantile of the absolute correlation of the first two tokens",
                .x_label = "residual weight gamma",
                .y_label = "95 % quantile of |correlation|",
                .x = {}};
  for (std::size_t k = 0; k < points.size(); ++k) {
    const auto temperature = points[k].temperature;
    if (k == 0 || temperature != points[k - 1].temperature) {
      const std::string of = temperature ? fmt::format(", temperature {:g}", *temperature) : "";
      plot.samples.push_back({"networks" + of});
      plot.curves.push_back({"SDE" + of, {}});
    }
    if (plot.samples.size() == 1) plot.x.push_back(*points[k].gamma);
    const auto& estimates = reports[k].at("estimates").at("abs_rho01");
    const auto& network = estimates.at("network").at("quantile_95");
    const double value = network.at("value"), error = network.at("standard_error");
    plot.samples.back().add_with_error(value, error);
    plot.curves.back().values.push_back(estimates.at("sde").at("quantile_95").at("value"));
  }
  return lines_script(plot);
}

}  // namespace

void run_sde_simulate(const SdeArguments& arguments, const RunContext& context) {
  run_ensemble(arguments, context, "simulate", "Covariance SDE at the last time", read_sde_points,
               read_sde_setup, [](const SdeSetup& setup) { return sampled_ensemble(setup); });
}

void run_sde_network(const SdeArguments& arguments, const RunContext& context) {
  run_ensemble(arguments, context, "network", "Random networks at the last layer", read_network_points,
               read_network_setup, [](const NetworkSetup& setup) { return sampled_ensemble(setup); });
}

void run_sde_compare(const SdeArguments& arguments, const RunContext& context) {
  SdeRun run(arguments, context, "compare", {"compare.json", "correlations.csv"},
             {"compare.png", "correlations.png", "quantiles.png"});
  std::vector<SdePoint> points;
  const auto setups = run.with_config([&] {
    points = read_sde_points(run.config);
    std::vector<ComparedSetup> all;
    for (const SdePoint& point : points) {
      all.push_back(run.read(point.config, read_compared_setup));
      run.steer(all.back().network.options);
      run.steer(all.back().limit);
    }
    return all;
  });
  run.origin.seed = setups.front().limit.seed;
  const Index tokens = setups.front().network.v0.rows();
  std::vector<nlohmann::json> reports;
  std::vector<DensityPanel> panels = covariance_panels(tokens);
  std::string rows;
  LinePlot correlations;
  nlohmann::ordered_json shapes;
  for (std::size_t k = 0; k < points.size(); ++k) {
    const SdePoint& point = points[k];
    const NetworkSetup& setup = setups[k].network;
    const auto draw = [&](const auto& sample) { return run.with_config(sample); };
    const CovarianceEnsemble network = draw([&] { return sampled_ensemble(setup); });
    SimulationOptions options = setups[k].limit;
    options.times = network.times();
    const CovarianceEnsemble limit = draw([&] {
      return sampled_ensemble(SdeSetup{limiting_model(setup.network), setup.v0, options});
    });
    if (k == 0) {
      shapes = shapes_of(limit, points.size());
      correlations = correlations_plot(network.times());
    }
    reports.push_back(compared(point, network, limit));
    rows += correlation_rows(point.cells() + "network,", network);
    rows += correlation_rows(point.cells() + "sde,", limit);
    const std::string label = point.label().empty() ? "" : ", " + point.label();
    const int colour = static_cast<int>(k) + 1;
    for (const auto& [name, ensemble, dashed] :
         {std::tuple("networks" + label, &network, false), std::tuple("SDE" + label, &limit, true)})
      add_covariance_curves(panels, *ensemble, last_time(*ensemble),
                            ensemble->running_paths(last_time(*ensemble)),
                            {.name = name, .values = {}, .colour = colour, .dashed = dashed});
    if (tokens < 2) continue;
    correlations.samples.push_back(mean_correlations("networks" + label, network));
    correlations.curves.push_back({"SDE" + label, mean_correlations("", limit).values});
  }
  run.write_csv("correlations.csv", points.front().columns() + "source," + correlation_columns() + rows);
  run.write_report("compare.json",
                   points.size() == 1 ? reports.front() : nlohmann::json{{"points", reports}});
  const bool over_gammas =
      tokens > 1 && points.size() > 1 && points[0].gamma && points[0].gamma != points[1].gamma;
  run.finish(shapes,
             {[&] { return densities_script("Random networks and the SDE at the last layer", panels); },
              [&] { return correlations_script(correlations, tokens); },
              [&] { return over_gammas ? quantile_script(points, reports) : std::string(); }});
}

namespace {

void add(CLI::App& parent, const std::string& name, const std::string& about,
         void (*run)(const SdeArguments&, const RunContext&), const RunContext& context) {
  auto arguments = std::make_shared<SdeArguments>();
  CLI::App* command = parent.add_subcommand(name, about);
  add_value(*command, "config", arguments->config, "JSON configuration", "FILE")->required();
  add_value(*command, "--out", arguments->out, "Folder for results (created if needed)", "FOLDER")
      ->required();
  add_threads_option(*command, arguments->threads);
  add_json_option(*command);
  add_force_option(*command, arguments->other_files);
  command->add_flag("--no-pictures", arguments->no_pictures,
                    "Write no pictures (gnuplot is not needed then)");
  if (run == run_sde_simulate || run == run_sde_network)
    command->add_flag_callback(
        "--trajectories", [arguments] { arguments->samples = SampleTimes::all; },
        "Also trajectories.csv: every path at all of times or layers, not the last alone");
  command->footer(sde_fields_help(name));
  command->callback([arguments, run, &context] { run(*arguments, context); });
}

void fill_sde_command(CLI::App& command, const RunContext& context) {
  command.require_subcommand(1);
  add(command, "simulate", "Paths of the covariance SDE", run_sde_simulate, context);
  add(command, "network", "Covariances of random finite networks", run_sde_network, context);
  add(command, "compare", "A shaped network against its limiting SDE, by Kolmogorov-Smirnov distances",
      run_sde_compare, context);
  add(command, "stopping-time",
      "When the eigenvalues of networks leave [1e-4, 1e4], over residual weights and temperatures",
      run_sde_stopping_time, context);
  add(command, "output", "Outputs of networks, or of the SDE, and their kurtosis", run_sde_output, context);
  add(command, "entropy", "Entropy of the softmax rows of networks against depth", run_sde_entropy, context);
  add(command, "explosion",
      "Probability that paths of the SDE explode, with its confidence interval; of more than two tokens, and "
      "of two or more under a causal mask, an upper bound",
      run_sde_explosion, context);
  add(command, "law", "Exact laws of two tokens: the correlation without attention, the gap under it",
      run_sde_law, context);
  add(command, "flow", "The deterministic limits: the flow of the drift, and gamma = 1 / sqrt(depth)",
      run_sde_flow, context);
  add(command, "coefficients", "The coefficients of the SDE at a V: softmax moments, drift and diffusion",
      run_sde_coefficients, context);
  add(command, "gradients",
      "Gradient norms of networks against depth, shaped compared with Pre-LN and Post-LN", run_sde_gradients,
      context);
}

}  // namespace

const Command sde_command{"sde", "The shaped transformer: covariance SDE and finite networks",
                          fill_sde_command};

}  // namespace widelimit::cli
