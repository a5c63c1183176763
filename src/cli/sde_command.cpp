#include "cli/sde_command.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <utility>

#include "cli/ranges.hpp"
#include "cli/sde_config.hpp"
#include "cli/sde_output.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/numerics/statistics.hpp"

namespace widelimit::cli {

using namespace covariance_sde;

namespace {

struct SdeArguments {
  std::filesystem::path config;
  std::filesystem::path out;
  int threads = 0;
  OtherFiles other_files = OtherFiles::refused;
  bool no_pictures = false;
  SampleTimes samples = SampleTimes::last;
};

constexpr const char* start_fields =
    "  V0 [[...]], or tokens [2], variance [1], rho0 [0.2]\n"
    "  seed [0], lower [0], upper: bounds of the eigenvalues at which a path stops\n";
constexpr const char* model_fields =
    "  model: transformer | attention | resnet | mlp\n"
    "  gamma_squared or gamma, lambda (checked: lambda^2 + gamma^2 = 1), temperature [1], c_plus [0], "
    "c_minus [-1], mask\n";
constexpr const char* network_fields =
    "  network: shaped_transformer | shaped_attention | shaped_resnet | unshaped | unshaped_pre_ln, or an "
    "intervention of\n"
    "    figure 3 (an unknown name lists them); width, depth or layers, key_width, hidden_width, samples "
    "[4096],\n"
    "    sampling: reduced | explicit_weights, and gamma, temperature and slopes as for sde simulate\n";

/// One run: its configuration and where its results go.
class SdeRun {
 public:
  /// `names` are the files besides the picture. Reads the configuration and opens the folder: what is wrong
  /// with either shows before the work.
  SdeRun(const SdeArguments& arguments, const RunContext& context, const char* command,
         std::vector<std::string> names, const std::string& picture)
      : config(read_sde_config(arguments.config)),  // braces would make a list of it
        origin{fmt::format("sde {}", command), config},
        folder{arguments.out, with(std::move(names), picture), arguments.other_files},
        record_{context.command_line, config, {}},
        picture_{picture},
        draws_{!arguments.no_pictures},
        gnuplot_{context.interrupt.token()} {}

  /// Puts what was written in place, then the picture that script() draws.
  template <typename Script>
  void finish(const nlohmann::ordered_json& shapes, const Script& script) {
    record_.shapes = shapes;
    folder.commit(record_);
    if (!draws_) return;
    folder.draw(picture_, script(), gnuplot_);
    folder.commit(record_);
  }

  nlohmann::json config;
  Origin origin;
  OutputFolder folder;

 private:
  static std::vector<std::string> with(std::vector<std::string> names, const std::string& picture) {
    names.push_back(picture);
    return names;
  }

  RunRecord record_;
  std::string picture_;
  bool draws_;
  Gnuplot gnuplot_;
};

Index last_time(const CovarianceEnsemble& ensemble) {
  return static_cast<Index>(ensemble.times().size()) - 1;
}

bool drawn(const std::string& observable) {
  return observable == "V00" || observable == "V01" || observable == "rho01";
}

/// Of the paths that ran to the end, or of all where none did.
std::vector<DensityPanel> density_panels(const CovarianceEnsemble& ensemble) {
  const Index last = last_time(ensemble);
  std::vector<DensityPanel> panels;
  const std::vector<Index> running = ensemble.running_paths(last);
  for (const Observable& observable :
       observables(ensemble, last, running.empty() ? ensemble.stopped_paths(last) : running))
    if (drawn(observable.name)) panels.push_back({observable.name, {observable}});
  return panels;
}

/// Says on standard error which share of paths no quantile at the horizon speaks of.
void warn_of_stopped(const std::string& what, const CovarianceEnsemble& ensemble) {
  const auto stopped = static_cast<Index>(ensemble.stopped_paths(last_time(ensemble)).size());
  if (stopped == 0) return;
  fmt::print(stderr,
             "widelimit: warning: {} of {} {} ({:.2g} %) left the bounds of the eigenvalues before the "
             "horizon; they are reported apart, in their last state inside\n",
             stopped, ensemble.paths(), what,
             100 * static_cast<double>(stopped) / static_cast<double>(ensemble.paths()));
}

nlohmann::ordered_json shapes_of(const CovarianceEnsemble& ensemble) {
  return {{"V0", {ensemble.tokens(), ensemble.tokens()}},
          {"times", ensemble.times().size()},
          {"paths", ensemble.paths()}};
}

void finish(SdeRun& run, const SdeArguments& arguments, const CovarianceEnsemble& ensemble) {
  write_ensemble(run.folder, ensemble, arguments.samples, run.origin);
  run.finish(shapes_of(ensemble), [&] { return densities_script(density_panels(ensemble)); });
  warn_of_stopped("paths", ensemble);
  fmt::print("{}\n", ensemble_counts(ensemble).dump());
}

/// body(), whose errors name the configuration.
template <typename Body>
auto with_config(const SdeArguments& arguments, const Body& body) {
  return naming_errors(arguments.config.string(), body);
}

/// Reads a setup, gives it what the command line says, and writes the ensemble that sample(setup) draws.
template <typename Setup, typename Sample>
void run_ensemble(const SdeArguments& arguments, const RunContext& context, const char* command,
                  Setup (*read)(FieldReader&), const Sample& sample) {
  SdeRun run(arguments, context, command, ensemble_file_names(arguments.samples), "densities.png");
  finish(run, arguments, with_config(arguments, [&] {
           FieldReader fields(run.config, "config");
           Setup setup = read(fields);
           fields.finish();
           setup.options.threads = arguments.threads;
           setup.options.stop = context.interrupt.token();
           run.origin.seed = setup.options.seed;
           return sample(setup);
         }));
}

void run_simulate(const SdeArguments& arguments, const RunContext& context) {
  run_ensemble(arguments, context, "simulate", read_sde_setup,
               [](const SdeSetup& setup) { return simulate(setup.model, setup.v0, setup.options); });
}

void run_network(const SdeArguments& arguments, const RunContext& context) {
  run_ensemble(arguments, context, "network", read_network_setup, [](const NetworkSetup& setup) {
    return sample_networks(setup.network, setup.v0, setup.options);
  });
}

/// A network and the SDE it converges to, at equal time and start.
struct Comparison {
  CovarianceEnsemble network;
  CovarianceEnsemble limit;
};

Comparison sample_both(SdeRun& run, const SdeArguments& arguments, const RunContext& context) {
  FieldReader fields(run.config, "config");
  NetworkSetup setup = read_network_setup(fields);
  setup.options.threads = arguments.threads;
  setup.options.stop = context.interrupt.token();
  SimulationOptions options;
  options.max_step = fields.number("max_step", 0.01);
  if (fields.has("step_control")) options.step_control = fields.number("step_control");
  options.paths = fields.integer("paths", setup.options.samples);
  fields.finish();
  options.seed = setup.options.seed;
  run.origin.seed = options.seed;
  options.threads = arguments.threads;
  options.stop = context.interrupt.token();
  CovarianceEnsemble network = sample_networks(setup.network, setup.v0, setup.options);
  options.times = network.times();
  CovarianceEnsemble limit = simulate(limiting_model(setup.network), setup.v0, options);
  return {std::move(network), std::move(limit)};
}

void run_compare(const SdeArguments& arguments, const RunContext& context) {
  SdeRun run(arguments, context, "compare", {"compare.json"}, "compare.png");
  const auto [network, limit] = with_config(arguments, [&] { return sample_both(run, arguments, context); });
  nlohmann::json report{{"origin", origin_json(run.origin)},
                        {"network", ensemble_counts(network)},
                        {"sde", ensemble_counts(limit)}};
  warn_of_stopped("networks", network);
  warn_of_stopped("paths of the SDE", limit);
  const auto running = network.running_paths(last_time(network)),
             kept = limit.running_paths(last_time(limit));
  if (running.empty() || kept.empty())
    throw NumericalError(
        "sde compare: no network or no path of the SDE stayed within the bounds up to the horizon; take an "
        "earlier one");
  const auto finite = observables(network, last_time(network), running),
             sampled = observables(limit, last_time(limit), kept);
  std::vector<DensityPanel> panels;
  for (std::size_t i = 0; i < finite.size(); ++i) {
    const double distance = numerics::kolmogorov_smirnov_distance(finite[i].values, sampled[i].values);
    const double size =
        numerics::two_sample_effective_size(finite[i].values.size(), sampled[i].values.size());
    const double p = numerics::kolmogorov_smirnov_p_value(distance, size);
    report["kolmogorov_smirnov"][finite[i].name] = {{"distance", distance}, {"p_value", p}};
    fmt::print("{:<20} KS {:.4f}  p = {:.3f}\n", finite[i].name, distance, p);
    if (drawn(finite[i].name))
      panels.push_back({finite[i].name, {{"network", finite[i].values}, {"SDE", sampled[i].values}}});
  }
  run.folder.write("compare.json", report.dump(2) + "\n");
  run.finish(shapes_of(limit), [&] { return densities_script(panels); });
}

/// Time of the last layer whose eigenvalues all lie within the bounds, over residual weights.
void run_stopping_time(const SdeArguments& arguments, const RunContext& context) {
  SdeRun run(arguments, context, "stopping-time", {"stopping_times.json"}, "stopping_times.png");
  nlohmann::json config = run.config;
  config.emplace("lower", 1e-4);
  config.emplace("upper", 1e4);
  std::vector<double> gammas = with_config(arguments, [&] { return take_gammas(config); });
  NetworkSetup setup = with_config(arguments, [&] {
    FieldReader fields(config, "config");
    NetworkSetup read = read_network_setup(fields);
    fields.finish();
    return read;
  });
  setup.options.threads = arguments.threads;
  setup.options.stop = context.interrupt.token();
  run.origin.seed = setup.options.seed;
  if (gammas.empty()) gammas.push_back(setup.network.residual.gamma());
  nlohmann::json report{{"origin", origin_json(run.origin)}, {"stopping_times", nlohmann::json::array()}};
  LinePlot plot{"gamma", "stopping time", gammas, {{"median", {}}, {"10 %", {}}}};
  for (const double gamma : gammas) {
    if (gammas.size() > 1) setup.network.residual = ResidualWeights::shaped(gamma * gamma);
    const CovarianceEnsemble ensemble =
        with_config(arguments, [&] { return sample_networks(setup.network, setup.v0, setup.options); });
    std::vector<double> times;
    times.reserve(static_cast<std::size_t>(ensemble.paths()));
    for (Index path = 0; path < ensemble.paths(); ++path)
      times.push_back(ensemble.outcome(path).last_inside_time);
    const std::vector<double> ascending = numerics::sorted(times);
    nlohmann::json row{{"gamma", gamma}, {"counts", ensemble_counts(ensemble)}};
    for (const double p : {0.1, 0.5, 0.9})
      row["quantiles"].push_back({{"p", p}, {"time", numerics::quantile(ascending, p).value}});
    plot.curves[0].values.push_back(numerics::quantile(ascending, 0.5).value);
    plot.curves[1].values.push_back(numerics::quantile(ascending, 0.1).value);
    fmt::print("gamma {:<8g} median {:.4f}  10 % {:.4f}\n", gamma, plot.curves[0].values.back(),
               plot.curves[1].values.back());
    report["stopping_times"].push_back(row);
  }
  run.folder.write("stopping_times.json", report.dump(2) + "\n");
  run.finish({{"V0", {setup.v0.rows(), setup.v0.cols()}},
              {"gammas", gammas.size()},
              {"networks", setup.options.samples}},
             [&] { return lines_script(plot); });
}

void add(CLI::App& parent, const std::string& name, const std::string& about, const std::string& footer,
         void (*run)(const SdeArguments&, const RunContext&), const RunContext& context) {
  auto arguments = std::make_shared<SdeArguments>();
  CLI::App* command = parent.add_subcommand(name, about);
  command->add_option("config", arguments->config, "JSON configuration")->required()->type_name("FILE");
  command->add_option("--out", arguments->out, "Folder for results (made if need be)")
      ->required()
      ->type_name("FOLDER");
  command
      ->add_option("--threads", arguments->threads, "Threads, 0 for all [0]; results do not depend on them")
      ->check(thread_count())
      ->type_name("N");
  add_force_option(*command, arguments->other_files);
  command->add_flag("--no-pictures", arguments->no_pictures,
                    "Write no pictures (gnuplot is not needed then)");
  if (run == run_simulate || run == run_network)
    command->add_flag_callback(
        "--trajectories", [arguments] { arguments->samples = SampleTimes::all; },
        "Also trajectories.csv: every path at all of times or layers, not the last alone");
  command->footer(footer);
  command->callback([arguments, run, &context] { run(*arguments, context); });
}

}  // namespace

void add_sde_command(CLI::App& program, const RunContext& context) {
  CLI::App* sde = program.add_subcommand("sde", "The shaped transformer: covariance SDE and finite networks");
  sde->require_subcommand(1);
  const std::string start = start_fields, model = model_fields, network = network_fields;
  add(*sde, "simulate", "Paths of the covariance SDE",
      "Configuration:\n" + model + start +
          "  times, horizon, or depth and width (horizon = depth / width)\n"
          "  paths [4096], max_step [0.01], step_control [0.02 with attention, 0 without], scheme: "
          "geometric | euler_maruyama | euler_maruyama_dense\n"
          "  finite_width_drift: a width whose exact ReLU drift to use\n"
          "Example: {\"model\": \"transformer\", \"gamma_squared\": 0.125, \"width\": 200, \"depth\": 150}",
      run_simulate, context);
  add(*sde, "network", "Covariances of random finite networks",
      "Configuration:\n" + network + start +
          "Example: {\"network\": \"unshaped_pre_ln\", \"gamma\": 1, \"lambda\": 1, \"width\": 200, "
          "\"depth\": 150}",
      run_network, context);
  add(*sde, "compare", "A shaped network against its limiting SDE, by Kolmogorov-Smirnov distances",
      "Configuration: as for sde network, and paths [samples], max_step [0.01], step_control [0.02 with "
      "attention, 0 without]",
      run_compare, context);
  add(*sde, "stopping-time", "When the eigenvalues of networks leave [1e-4, 1e4], over residual weights",
      "Configuration: as for sde network, with gammas [...] instead of gamma if wanted", run_stopping_time,
      context);
}

}  // namespace widelimit::cli
