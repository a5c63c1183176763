#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <optional>

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
  PropagationModel model;
  PropagationOutput output;
  SampledNetworks sampled{.networks = 32};
  std::optional<double> q0, c0;  // none: the command's default
  double p_inside = 0.75, p_across = 0.5;
  std::filesystem::path samples;  ///< Of histograms; empty: not asked for.
  std::stop_token stop;
};

/// Options of a run with progress.
class SamplingWithProgress {
 public:
  explicit SamplingWithProgress(const SimulateArguments& arguments)
      : bar_{"networks", Counted::steps, arguments.sampled.threads},
        options_{arguments.sampled.options(arguments.model, arguments.stop)} {
    options_.progress = [this](Index done, Index total) { bar_.show(done, total); };
  }
  [[nodiscard]] const propagation::SampleOptions& options() const { return options_; }

 private:
  ProgressBar bar_;
  propagation::SampleOptions options_;
};

/// `start`: where tokens start, as the command reads it.
ResultTable begin(const char* command, const SimulateArguments& arguments, const PropagationModel& model,
                  const json& start) {
  check_output(arguments.output, model, {.written = {{"--samples", arguments.samples}}});
  json settings{{"width", arguments.sampled.width}, {"networks", arguments.sampled.networks}};
  settings.update(start);
  ResultTable table = table_of(fmt::format("simulate {}", command), model, settings);
  table.origin.seed = arguments.sampled.seed;
  table.summary["parameters"].update({{"width", arguments.sampled.width},
                                      {"networks", arguments.sampled.networks},
                                      {"causal", arguments.model.causal}});
  return table;
}

void run_trajectory(const SimulateArguments& arguments) {
  check_start(*arguments.model.command);
  const double q0 = arguments.q0.value_or(1), c0 = arguments.c0.value_or(0);
  ResultTable table = begin("trajectory", arguments, arguments.model, {{"q0", q0}, {"c0", c0}});
  const Parameters parameters = arguments.model.parameters();
  const Index depth = whole_depth(arguments.model.depth);
  if (arguments.model.causal && !arguments.output.plot.empty())
    throw ArgumentError(
        "--plot: the field of displacements is that of tokens that are alike; leave it out with --causal");
  const TokenDistribution start = TokenDistribution::gaussian(q0, c0);
  const SamplingWithProgress run(arguments);
  const auto measured = measured_trajectory(parameters, start, depth, run.options());
  const BlockMap map(parameters);
  const auto theory = mean_trajectory(map, TokenState::from_cosine(q0, c0), depth, arguments.model.mask());
  table.columns = {"block", "q", "q_error", "q_theory", "cosine", "cosine_error", "cosine_theory"};
  for (std::size_t t = 0; t < theory.size(); ++t)
    table.rows.push_back({static_cast<double>(t), measured[t].q.value, measured[t].q.standard_error,
                          theory[t].q, measured[t].cosine.value, measured[t].cosine.standard_error,
                          theory[t].cosine()});
  write_block(arguments.model, parameters);
  write_table(arguments.output, table);
  warn_of_annealing(arguments.model, largest_gap(theory), depth, start_options(arguments.model, q0, c0));
  if (!arguments.output.plot.empty())
    draw_output_file(arguments.output.plot, trajectory_script(map, theory, measured), arguments.stop);
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

void run_histograms(const SimulateArguments& arguments) {
  check_start(*arguments.model.command);
  const double q0 = arguments.q0.value_or(1), c0 = arguments.c0.value_or(0);
  ResultTable table = begin("histograms", arguments, arguments.model, {{"q0", q0}, {"c0", c0}});
  const Parameters parameters = arguments.model.parameters();
  const Index depth = whole_depth(arguments.model.depth);
  std::vector<Index> depths;
  for (const Index part : {8, 4, 2, 1})
    if (depth / part >= 1 && (depths.empty() || depth / part > depths.back())) depths.push_back(depth / part);
  const SamplingWithProgress run(arguments);
  const auto samples = token_samples(parameters, TokenDistribution::gaussian(q0, c0), depths, run.options());
  const auto path =
      mean_trajectory(BlockMap(parameters), TokenState::from_cosine(q0, c0), depth, arguments.model.mask());
  std::vector<TokenState> theory;
  table.columns = {"block", "q", "q_deviation", "q_theory", "cosine", "cosine_deviation", "cosine_theory"};
  for (const TokenSamples& sample : samples) {
    theory.push_back(path[static_cast<std::size_t>(sample.depth)]);
    table.rows.push_back({static_cast<double>(sample.depth), numerics::mean(sample.squared_norms).value,
                          std::sqrt(numerics::variance(sample.squared_norms).value), theory.back().q,
                          numerics::mean(sample.cosines).value,
                          std::sqrt(numerics::variance(sample.cosines).value), theory.back().cosine()});
  }
  write_block(arguments.model, parameters);
  write_table(arguments.output, table);
  write_samples(arguments.samples, table.origin, samples);
  warn_of_annealing(arguments.model, largest_gap(path), depth, start_options(arguments.model, q0, c0));
  if (!arguments.output.plot.empty())
    draw_output_file(arguments.output.plot, histograms_script(samples, theory), arguments.stop);
}

void run_angle(const SimulateArguments& arguments) {
  PropagationModel model = arguments.model;
  const Parameters parameters = model.parameters();
  if (!model.causal && has_fixed_norm(parameters))
    model.exclude("--depth", "has no effect on the angles of one block without --causal");
  const double q0 = arguments.q0.value_or(equal_tokens_norm(parameters));
  const double cosine = arguments.c0.value_or(0.99);
  ResultTable table = begin("angle", arguments, model, {{"q0", q0}, {"c0", cosine}});
  const SamplingWithProgress run(arguments);
  table.summary["measured"] = estimate_json(measured_angle_exponent(parameters, q0, cosine, run.options()));
  table.summary["q0"] = q0;
  table.summary["c0"] = cosine;
  if (!arguments.model.causal)
    table.summary["theory"] = one_block_exponent(BlockMap(parameters), q0, 1 - cosine);
  table.summary["theory_small_gap"] = one_block_exponent_limit(parameters, q0, arguments.model.mask());
  ExponentOptions options;
  options.depth = arguments.model.depth;
  options.mask = arguments.model.mask();
  table.summary["lambda_a_log"] = std::log1p(exponent(Exponent::angle, parameters, options));
  write_block(model, parameters);
  write_table(arguments.output, table);
  warn_of_annealing(model, 1 - cosine, 1, start_options(model, q0, cosine));
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
  if (arguments.c0 && !arguments.q0)
    throw ArgumentError("--c0: needs --q0 as well; tokens start equal, at the fixed point, without them");
  json given = json::object();  // without a start, tokens are equal at the fixed point
  if (arguments.q0) given = {{"q0", *arguments.q0}, {"c0", arguments.c0.value_or(0)}};
  PropagationModel model = arguments.model;
  if (!arguments.q0) model.exclude("--sigma-A", "has no effect on equal tokens, which start without --q0");
  ResultTable table = begin("gradient", arguments, model, given);
  const Parameters parameters = model.parameters();
  const Index depth = whole_depth(model.depth);
  const double c0 = arguments.c0.value_or(0);
  const TokenDistribution start = arguments.q0 ? TokenDistribution::gaussian(*arguments.q0, c0)
                                               : TokenDistribution::equal(equal_tokens_norm(parameters));
  const SamplingWithProgress run(arguments);
  const MeasuredGradient measured = measured_gradient_exponent(parameters, start, depth, run.options());
  table.summary["log_of_mean"] = estimate_json(measured.log_of_mean);
  table.summary["mean_of_log"] = estimate_json(measured.mean_of_log);
  table.summary["variance_of_log"] = measured.variance_of_log;
  table.summary["depth"] = depth;
  table.summary["theory_equal_tokens"] =
      exponent(Exponent::gradient, parameters, {.depth = model.depth, .mask = model.mask()});
  if (arguments.q0 && !arguments.model.causal)
    table.summary["theory"] =
        gradient_exponent_from(BlockMap(parameters), TokenState::from_cosine(*arguments.q0, c0), depth);
  write_block(model, parameters);
  write_table(arguments.output, table);
  warn_of_spread(measured, arguments.sampled.networks, depth);
  if (!arguments.q0) return;
  const TokenState first = TokenState::from_cosine(*arguments.q0, c0);
  warn_of_annealing(model, largest_gap(mean_trajectory(BlockMap(parameters), first, depth, model.mask())),
                    depth, start_options(model, *arguments.q0, c0));
}

void run_groups(const SimulateArguments& arguments) {
  const double q0 = arguments.q0.value_or(1);
  ResultTable table = begin("groups", arguments, arguments.model,
                            {{"q0", q0}, {"p_inside", arguments.p_inside}, {"p_across", arguments.p_across}});
  const Parameters parameters = arguments.model.parameters();
  const Index depth = whole_depth(arguments.model.depth), n = parameters.tokens;
  const TokenDistribution start = naming_errors("--p-inside, --p-across", [&] {
    return TokenDistribution::two_groups(q0, arguments.p_inside, arguments.p_across);
  });
  numerics::require_memory("--tokens", fmt::format("a Gram matrix of {} tokens", n),
                           2 * sizeof(double) * static_cast<double>(n) * static_cast<double>(n),
                           "take fewer tokens");
  const SamplingWithProgress run(arguments);
  const auto measured = measured_group_ratio(parameters, start, depth, run.options());
  Matrix<double> gram = Matrix<double>::Constant(n, n, arguments.p_across);
  gram.topLeftCorner(n / 2, n / 2).setConstant(arguments.p_inside);
  gram.bottomRightCorner(n - n / 2, n - n / 2).setConstant(arguments.p_inside);
  gram.diagonal().setConstant(q0);
  const BlockMap map(parameters);
  double widest = 0;  // of pairs across the halves
  table.columns = {"block", "ratio", "ratio_error", "ratio_theory"};
  for (std::size_t t = 0; t < measured.size(); ++t) {
    if (t > 0) gram = map.block(gram, arguments.model.mask());
    table.rows.push_back(
        {static_cast<double>(t), measured[t].value, measured[t].standard_error, gram(0, 1) / gram(0, n / 2)});
    widest = std::max(widest, 1 - gram(0, n - 1) / std::sqrt(gram(0, 0) * gram(n - 1, n - 1)));
  }
  write_block(arguments.model, parameters);
  write_table(arguments.output, table);
  warn_of_annealing(arguments.model, widest, depth, "--gram start.npy, the Gram matrix of the start");
}

void add(CLI::App& parent, const char* name, const char* description, const std::string& picture,
         void (*run)(const SimulateArguments&), const RunContext& context) {
  auto arguments = std::make_shared<SimulateArguments>();
  arguments->stop = context.interrupt.token();
  CLI::App* command = parent.add_subcommand(name, description);
  add_model_options(*command, arguments->model);
  add_block_option(*command, arguments->model);
  add_output_options(*command, arguments->output, picture);
  add_sampling_options(*command, arguments->sampled, 1, "Number of networks");
  add_value(*command, "--q0", arguments->q0, "Squared norm / width of tokens at the start, above 0",
            positive_number(), "Q");
  if (run == run_histograms)
    add_value(*command, "--samples", arguments->samples, "Also every value after the histograms", "FILE.csv");
  if (run == run_groups) {
    add_number(*command, "--p-inside", arguments->p_inside, "Dot product within a half, p-across to q0",
               number_not_negative(), "P");
    add_number(*command, "--p-across", arguments->p_across, "Dot product across halves, 0 to p-inside",
               number_not_negative(), "P");
  } else {
    add_value(*command, "--c0", arguments->c0,
              run == run_angle ? "Cosine of two tokens at the start, from 0 to 1"
                               : "Cosine of two tokens at the start, from 0 to 1, together with --q0",
              number_from_to(0, 1), "C");
  }
  command->callback([arguments, run] { run(*arguments); });
}

}  // namespace

void add_propagation_simulate_command(CLI::App& propagation, const RunContext& context) {
  CLI::App* simulate =
      propagation.add_subcommand("simulate", "Random transformers of finite width compared with the theory");
  simulate->require_subcommand(1);
  add(*simulate, "trajectory", "Norm and angle after each block (q0 1, c0 0)",
      "Theory and networks over the field of displacements", run_trajectory, context);
  add(*simulate, "histograms", "Norms of tokens and cosines of pairs at four depths (q0 1, c0 0)",
      "Histograms with the theory's values", run_histograms, context);
  add(*simulate, "angle", "Angle exponent of one block (q0 the fixed point, 1 without one; c0 0.99)", "",
      run_angle, context);
  add(*simulate, "gradient",
      "Gradient exponent from equal tokens at the fixed point, or from q0 and c0 if q0 is given", "",
      run_gradient, context);
  add_propagation_simulate_phase_command(*simulate, context);
  add(*simulate, "groups", "Two halves of tokens become alike (q0 1)", "", run_groups, context);
}

}  // namespace widelimit::cli
