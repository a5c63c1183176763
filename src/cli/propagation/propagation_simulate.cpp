#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>

#include "cli/options/ranges.hpp"
#include "cli/output/output_folder.hpp"
#include "cli/output/progress_bar.hpp"
#include "cli/output/result_text.hpp"
#include "cli/propagation/propagation_command.hpp"
#include "cli/propagation/propagation_model.hpp"
#include "cli/propagation/propagation_pictures.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/numerics/memory.hpp"
#include "widelimit/propagation/estimators.hpp"

namespace widelimit::cli {

using namespace propagation;
using nlohmann::json;

namespace {

struct SimulateArguments {
  PropagationOptions options;
  PropagationOutput output;
  int threads = 0;
  std::filesystem::path samples;  ///< Of histograms; empty: not asked for.
  std::stop_token stop;
};

/// read(fields) of the options, to be computed as the command says.
template <typename Read>
auto simulation_of(const SimulateArguments& arguments, const PropagationOptions& options, const Read& read) {
  auto simulation = options.read(read);
  simulation.sampling.threads = arguments.threads;
  simulation.sampling.stop = arguments.stop;
  return simulation;
}

/// compute(sampling), with a bar.
template <typename Compute>
auto with_bar(SampleOptions sampling, const Compute& compute) {
  ProgressBar bar("networks", Counted::steps, sampling.threads);
  sampling.progress = [&bar](Index done, Index total) { bar.show(done, total); };
  return compute(sampling);
}

/// `start`: where tokens start, as the command reads it.
template <typename Start>
ResultTable begin(const char* command, const SimulateArguments& arguments, const PropagationOptions& options,
                  const Simulation<Start>& simulation, const json& start) {
  const SampleOptions& sampling = simulation.sampling;
  check_output(arguments.output, options, {.written = {{"--samples", arguments.samples}}});
  const json drawn{{"width", sampling.width}, {"networks", sampling.networks}};
  json settings = drawn;
  settings.update(start);
  ResultTable table =
      table_of(fmt::format("simulate {}", command), options, simulation.transformer, settings);
  table.origin.seed = sampling.seed;
  table.summary["parameters"].update(drawn);
  table.summary["parameters"]["causal"] = sampling.mask == AttentionMask::causal;
  return table;
}

/// The theory's path of tokens.
std::vector<TokenState> theory_of(const Transformer& transformer, double q0, double c0) {
  return mean_trajectory(BlockMap(transformer.parameters), TokenState::from_cosine(q0, c0),
                         transformer.blocks(), transformer.mask);
}

/// Writes the block and the table.
void write_results(const SimulateArguments& arguments, const Transformer& transformer,
                   const ResultTable& table) {
  write_block(arguments.options, transformer);
  write_table(arguments.output, table);
}

/// Tokens that start at one norm and cosine, in the theory and in networks.
struct FromCosine {
  Simulation<CosineStart> simulation;
  ResultTable table;
  std::vector<TokenState> theory;

  [[nodiscard]] double q0() const { return simulation.start.q0.value(); }
  [[nodiscard]] double c0() const { return simulation.start.c0; }
  /// compute(parameters, start, sampling), with a bar.
  template <typename Compute>
  auto networks(const Compute& compute) const {
    const Parameters& parameters = simulation.transformer.parameters;
    return with_bar(simulation.sampling, [&](const SampleOptions& sampling) {
      return compute(parameters, simulation.start.distribution(parameters), sampling);
    });
  }
};

FromCosine begin_from_cosine(const char* command, const SimulateArguments& arguments) {
  check_start(arguments.options);
  FromCosine run{simulation_of(arguments, arguments.options, read_simulation), {}, {}};
  run.table =
      begin(command, arguments, arguments.options, run.simulation, {{"q0", run.q0()}, {"c0", run.c0()}});
  run.theory = theory_of(run.simulation.transformer, run.q0(), run.c0());
  return run;
}

void end(const SimulateArguments& arguments, const FromCosine& run) {
  const Transformer& transformer = run.simulation.transformer;
  write_results(arguments, transformer, run.table);
  warn_of_annealing(arguments.options, transformer, largest_gap(run.theory), transformer.blocks(),
                    start_options(transformer, run.q0(), run.c0()));
}

void run_trajectory(const SimulateArguments& arguments) {
  FromCosine run = begin_from_cosine("trajectory", arguments);
  const Transformer& transformer = run.simulation.transformer;
  if (transformer.mask == AttentionMask::causal && !arguments.output.plot.empty())
    throw ArgumentError(
        "--plot: the field of displacements is that of tokens that are alike; leave it out with --causal");
  const auto measured = run.networks([&](const auto& parameters, const auto& start, const auto& sampling) {
    return measured_trajectory(parameters, start, transformer.blocks(), sampling);
  });
  run.table.columns = {"block", "q", "q_error", "q_theory", "cosine", "cosine_error", "cosine_theory"};
  for (std::size_t t = 0; t < run.theory.size(); ++t)
    run.table.rows.push_back({static_cast<double>(t), measured[t].q.value, measured[t].q.standard_error,
                              run.theory[t].q, measured[t].cosine.value, measured[t].cosine.standard_error,
                              run.theory[t].cosine()});
  end(arguments, run);
  if (!arguments.output.plot.empty())
    draw_output_file(
        arguments.output.plot,
        gnuplot_script(trajectory_picture(BlockMap(transformer.parameters), run.theory, measured)),
        arguments.stop);
}

/// Every norm and every cosine that histograms count, a row each.
void write_samples(const std::filesystem::path& file, const Origin& origin,
                   const std::vector<TokenSamples>& samples) {
  if (file.empty()) return;
  std::string text = origin_comment(origin) + "block,observable,value\n";
  const auto append = [&](Index block, const char* observable, const std::vector<double>& values) {
    for (const double value : values)
      fmt::format_to(std::back_inserter(text), "{},{},{}\n", block, observable, value);
  };
  for (const TokenSamples& sample : samples) {
    append(sample.depth, "q", sample.squared_norms);
    append(sample.depth, "cosine", sample.cosines);
  }
  files::replace_file(file, text);
}

/// An eighth, a quarter, half and all of a depth.
std::vector<Index> parts_of(Index depth) {
  std::vector<Index> depths;
  for (const Index part : {8, 4, 2, 1})
    if (depth / part >= 1 && (depths.empty() || depth / part > depths.back())) depths.push_back(depth / part);
  return depths;
}

void run_histograms(const SimulateArguments& arguments) {
  FromCosine run = begin_from_cosine("histograms", arguments);
  const auto samples = run.networks([&](const auto& parameters, const auto& start, const auto& sampling) {
    return token_samples(parameters, start, parts_of(run.simulation.transformer.blocks()), sampling);
  });
  std::vector<TokenState> theory;
  run.table.columns = {"block",        "q", "q_deviation", "q_theory", "cosine", "cosine_deviation",
                       "cosine_theory"};
  for (const TokenSamples& sample : samples) {
    theory.push_back(run.theory[static_cast<std::size_t>(sample.depth)]);
    run.table.rows.push_back({static_cast<double>(sample.depth), numerics::mean(sample.squared_norms).value,
                              std::sqrt(numerics::variance(sample.squared_norms).value), theory.back().q,
                              numerics::mean(sample.cosines).value,
                              std::sqrt(numerics::variance(sample.cosines).value), theory.back().cosine()});
  }
  end(arguments, run);
  write_samples(arguments.samples, run.table.origin, samples);
  if (!arguments.output.plot.empty())
    draw_output_file(arguments.output.plot, gnuplot_script(histograms_picture(samples, theory)),
                     arguments.stop);
}

void run_angle(const SimulateArguments& arguments) {
  PropagationOptions options = arguments.options;
  const auto simulation = simulation_of(arguments, options, read_simulation);
  const Transformer& transformer = simulation.transformer;
  const Parameters& parameters = transformer.parameters;
  const bool causal = transformer.mask == AttentionMask::causal;
  if (!causal && has_fixed_norm(parameters))
    options.exclude("depth", "has no effect on the angles of one block without --causal");
  const double q0 = simulation.start.norm(parameters), cosine = simulation.start.c0;
  ResultTable table = begin("angle", arguments, options, simulation, {{"q0", q0}, {"c0", cosine}});
  table.summary["measured"] = estimate_json(with_bar(simulation.sampling, [&](const SampleOptions& sampling) {
    return measured_angle_exponent(parameters, q0, cosine, sampling);
  }));
  table.summary["q0"] = q0;
  table.summary["c0"] = cosine;
  if (!causal) table.summary["theory"] = one_block_exponent(BlockMap(parameters), q0, 1 - cosine);
  table.summary["theory_small_gap"] = one_block_exponent_limit(parameters, q0, transformer.mask);
  table.summary["lambda_a_log"] =
      std::log1p(exponent(Exponent::angle, parameters, transformer.exponent_options()));
  write_results(arguments, transformer, table);
  warn_of_annealing(options, transformer, 1 - cosine, 1, start_options(transformer, q0, cosine));
}

/// Says on standard error that few networks make the mean of squared gradients, where they do.
void warn_of_spread(const MeasuredGradient& measured, Index networks, Index depth) {
  if (!(measured.variance_of_log > 1)) return;
  warn(
      "the logarithm of the squared gradient has the variance {:.3g} over "
      "networks: few of them make its mean, so that log_of_mean of {} networks is too low and its "
      "standard error too small; a log-normal law of this variance has {:.4g} in its place; take a "
      "larger --width or a smaller --depth",
      measured.variance_of_log, networks,
      measured.mean_of_log.value + measured.variance_of_log / (2 * static_cast<double>(depth)));
}

void run_gradient(const SimulateArguments& arguments) {
  PropagationOptions options = arguments.options;
  if (options.has("c0") && !options.has("q0"))
    throw ArgumentError("--c0: needs --q0 as well; tokens start equal, at the fixed point, without them");
  if (!options.has("q0"))
    options.exclude("sigma_A", "has no effect on equal tokens, which start without --q0");
  const auto simulation = simulation_of(arguments, options, read_simulation);
  const auto& [q0, c0] = simulation.start;
  json given = json::object();  // without a start, tokens are equal at the fixed point
  if (q0) given = {{"q0", *q0}, {"c0", c0}};
  ResultTable table = begin("gradient", arguments, options, simulation, given);
  const Transformer& transformer = simulation.transformer;
  const Parameters& parameters = transformer.parameters;
  const Index depth = transformer.blocks();
  const MeasuredGradient measured = with_bar(simulation.sampling, [&](const SampleOptions& sampling) {
    return measured_gradient_exponent(parameters, simulation.start.distribution(parameters), depth, sampling);
  });
  table.summary["log_of_mean"] = estimate_json(measured.log_of_mean);
  table.summary["mean_of_log"] = estimate_json(measured.mean_of_log);
  table.summary["variance_of_log"] = measured.variance_of_log;
  table.summary["depth"] = depth;
  table.summary["theory_equal_tokens"] =
      exponent(Exponent::gradient, parameters, transformer.exponent_options());
  if (q0 && transformer.mask == AttentionMask::full)
    table.summary["theory"] =
        gradient_exponent_from(BlockMap(parameters), TokenState::from_cosine(*q0, c0), depth);
  write_results(arguments, transformer, table);
  warn_of_spread(measured, simulation.sampling.networks, depth);
  if (q0)
    warn_of_annealing(options, transformer, largest_gap(theory_of(transformer, *q0, c0)), depth,
                      start_options(transformer, *q0, c0));
}

void run_groups(const SimulateArguments& arguments) {
  const auto simulation = simulation_of(arguments, arguments.options, read_group_simulation);
  const auto& [transformer, start, drawn] = simulation;
  ResultTable table = begin("groups", arguments, arguments.options, simulation,
                            {{"q0", start.q0}, {"p_inside", start.p_inside}, {"p_across", start.p_across}});
  const Parameters& parameters = transformer.parameters;
  const Index depth = transformer.blocks(), n = parameters.tokens;
  numerics::require_memory("--tokens", fmt::format("a Gram matrix of {} tokens", n),
                           2 * sizeof(double) * static_cast<double>(n) * static_cast<double>(n),
                           "take fewer tokens");
  const auto measured = with_bar(drawn, [&, &halves = start](const SampleOptions& sampling) {
    return measured_group_ratio(parameters, halves.distribution(), depth, sampling);
  });
  Matrix<double> gram = start.gram(n);
  const BlockMap map(parameters);
  double widest = 0;  // of pairs across the halves
  table.columns = {"block", "ratio", "ratio_error", "ratio_theory"};
  for (std::size_t t = 0; t < measured.size(); ++t) {
    if (t > 0) gram = map.block(gram, transformer.mask);
    table.rows.push_back(
        {static_cast<double>(t), measured[t].value, measured[t].standard_error, gram(0, 1) / gram(0, n / 2)});
    widest = std::max(widest, 1 - gram(0, n - 1) / std::sqrt(gram(0, 0) * gram(n - 1, n - 1)));
  }
  write_results(arguments, transformer, table);
  warn_of_annealing(arguments.options, transformer, widest, depth,
                    "--gram start.npy, the Gram matrix of the start");
}

void add(CLI::App& parent, const char* name, const char* description, const char* computation,
         const std::string& picture, void (*run)(const SimulateArguments&), const RunContext& context) {
  auto arguments = std::make_shared<SimulateArguments>();
  arguments->stop = context.interrupt.token();
  CLI::App* command = parent.add_subcommand(name, description);
  arguments->options.add_computation(*command, computation);
  arguments->options.add_block(*command);
  add_output_options(*command, arguments->output, picture);
  add_threads_option(*command, arguments->threads);
  if (run == run_histograms)
    add_value(*command, "--samples", arguments->samples, "Also every value after the histograms", "FILE.csv");
  command->callback([arguments, run] { run(*arguments); });
}

}  // namespace

void add_propagation_simulate_command(CLI::App& propagation, const RunContext& context) {
  CLI::App* simulate =
      propagation.add_subcommand("simulate", "Random transformers of finite width compared with the theory");
  simulate->require_subcommand(1);
  add(*simulate, "trajectory", "Norm and angle after each block", "simulate_trajectory",
      "Theory and networks over the field of displacements", run_trajectory, context);
  add(*simulate, "histograms", "Norms of tokens and cosines of pairs at four depths", "simulate_samples",
      "Histograms with the theory's values", run_histograms, context);
  add(*simulate, "angle", "Angle exponent of one block", "simulate_angle", "", run_angle, context);
  add(*simulate, "gradient",
      "Gradient exponent from equal tokens at the fixed point, or from q0 and c0 if q0 is given",
      "simulate_gradient", "", run_gradient, context);
  add_propagation_simulate_phase_command(*simulate, context);
  add(*simulate, "groups", "Two halves of tokens become alike", "simulate_groups", "", run_groups, context);
}

}  // namespace widelimit::cli
