#include "cli/sde_command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <memory>
#include <utility>

#include "cli/output_options.hpp"
#include "cli/ranges.hpp"
#include "cli/sde_fields.hpp"
#include "cli/sde_run.hpp"
#include "widelimit/numerics/statistics.hpp"

namespace widelimit::cli {

using namespace covariance_sde;

namespace {

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

/// Writes the ensemble that sample(setup) draws, the setup as `read` makes it.
template <typename Setup, typename Sample>
void run_ensemble(const SdeArguments& arguments, const RunContext& context, const char* command,
                  Setup (*read)(FieldReader&), const Sample& sample) {
  SdeRun run(arguments, context, command, ensemble_file_names(arguments.samples), "densities.png");
  finish(run, arguments,
         with_config(arguments, [&] { return sample(run.read_setup(arguments, context, read)); }));
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
  SimulationOptions options = read_limit_options(fields, setup);
  fields.finish(unused_field);
  run.origin.seed = options.seed;
  options.threads = arguments.threads;
  options.stop = context.interrupt.token();
  CovarianceEnsemble network = sample_networks(setup.network, setup.v0, setup.options);
  options.times = network.times();
  CovarianceEnsemble limit = simulate(limiting_model(setup.network), setup.v0, options);
  return {std::move(network), std::move(limit)};
}

}  // namespace

void run_sde_simulate(const SdeArguments& arguments, const RunContext& context) {
  run_ensemble(arguments, context, "simulate", read_sde_setup,
               [](const SdeSetup& setup) { return simulate(setup.model, setup.v0, setup.options); });
}

void run_sde_network(const SdeArguments& arguments, const RunContext& context) {
  run_ensemble(arguments, context, "network", read_network_setup, [](const NetworkSetup& setup) {
    return sample_networks(setup.network, setup.v0, setup.options);
  });
}

void run_sde_compare(const SdeArguments& arguments, const RunContext& context) {
  SdeRun run(arguments, context, "compare", {"compare.json"}, "compare.png");
  const auto [network, limit] = with_config(arguments, [&] { return sample_both(run, arguments, context); });
  nlohmann::json report{{"network", ensemble_counts(network)}, {"sde", ensemble_counts(limit)}};
  warn_of_stopped("networks", network);
  warn_of_stopped("paths of the SDE", limit);
  require_running("sde compare", "networks", network);
  require_running("sde compare", "paths of the SDE", limit);
  const auto running = network.running_paths(last_time(network)),
             kept = limit.running_paths(last_time(limit));
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
  run.write_report("compare.json", report);
  run.finish(shapes_of(limit), [&] { return densities_script(panels); });
}

namespace {

void add(CLI::App& parent, const std::string& name, const std::string& about,
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
  if (run == run_sde_simulate || run == run_sde_network)
    command->add_flag_callback(
        "--trajectories", [arguments] { arguments->samples = SampleTimes::all; },
        "Also trajectories.csv: every path at all of times or layers, not the last alone");
  command->footer(sde_fields_help(name));
  command->callback([arguments, run, &context] { run(*arguments, context); });
}

}  // namespace

void add_sde_command(CLI::App& program, const RunContext& context) {
  CLI::App* sde = program.add_subcommand("sde", "The shaped transformer: covariance SDE and finite networks");
  sde->require_subcommand(1);
  add(*sde, "simulate", "Paths of the covariance SDE", run_sde_simulate, context);
  add(*sde, "network", "Covariances of random finite networks", run_sde_network, context);
  add(*sde, "compare", "A shaped network against its limiting SDE, by Kolmogorov-Smirnov distances",
      run_sde_compare, context);
  add(*sde, "stopping-time",
      "When the eigenvalues of networks leave [1e-4, 1e4], over residual weights and temperatures",
      run_sde_stopping_time, context);
  add(*sde, "output", "Outputs of networks, or of the SDE, and their kurtosis", run_sde_output, context);
  add(*sde, "entropy", "Entropy of the softmax rows of networks against depth", run_sde_entropy, context);
  add(*sde, "explosion",
      "Probability that paths of the SDE explode, with its confidence interval; of more than two tokens, and "
      "of two or "
      "more under a causal mask, an upper bound",
      run_sde_explosion, context);
  add(*sde, "law", "Exact laws of two tokens: the correlation without attention, the gap under it",
      run_sde_law, context);
  add(*sde, "flow", "The deterministic limits: the flow of the drift, and gamma = 1 / sqrt(depth)",
      run_sde_flow, context);
  add(*sde, "gradients", "Gradient norms of networks against depth, shaped beside Pre-LN and Post-LN",
      run_sde_gradients, context);
}

}  // namespace widelimit::cli
