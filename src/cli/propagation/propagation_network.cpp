#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>
#include <xtensor/xadapt.hpp>

#include "cli/options/network_argument.hpp"
#include "cli/options/ranges.hpp"
#include "cli/output/output_folder.hpp"
#include "cli/output/progress_bar.hpp"
#include "cli/propagation/block_pictures.hpp"
#include "cli/propagation/propagation_command.hpp"
#include "cli/propagation/propagation_model.hpp"
#include "cli/propagation/varied_numbers.hpp"
#include "cli/tasks/npy_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/network/network_file.hpp"
#include "widelimit/propagation/fields.hpp"
#include "widelimit/propagation/results.hpp"
#include "widelimit/propagation/sampled_block.hpp"

namespace widelimit::cli {

using namespace propagation;
using nlohmann::json;
using numerics::Estimate;

namespace {

struct BlockArguments {
  std::string network;
  TableOptions options;
  BlockTask task = {};  ///< What the options say, when they have been read.
  std::filesystem::path gram, grams;
  bool gradients = false;
  std::vector<std::string> vary;
  int threads = 0;
  PropagationOutput output;
  std::stop_token stop;

  [[nodiscard]] RunControl control() const {
    RunControl run;
    run.threads = threads;
    run.stop = stop;
    return run;
  }
};

Matrix<double> start_of(const BlockArguments& arguments) {
  const TableOptions& options = arguments.options;
  if (arguments.gram.empty()) {
    check_start(options);
    return naming_errors("--c0", [&] { return arguments.task.start(); });
  }
  if (options.has("q0") || options.has("c0") || options.has("tokens"))
    throw ArgumentError(
        "--tokens, --q0 and --c0 are the start where there is no --gram: give one or the other");
  const auto array = read_finite<double>(arguments.gram);
  if (array.dimension() != 2 || array.shape(0) != array.shape(1))
    fail_in(arguments.gram, "expected a Gram matrix [tokens, tokens]");
  const auto n = static_cast<Index>(array.shape(0));
  return Eigen::Map<const Matrix<double>>(array.data(), n, n);
}

// Larger ones are named by their file.
constexpr Index largest_recorded_gram = 256;

json recorded_gram(const BlockArguments& arguments, const Matrix<double>& start) {
  if (start.rows() > largest_recorded_gram) return arguments.gram.string();
  return matrix_json(start);
}

/// `configuration`: what the mode has besides the block and its depth.
ResultTable block_table(const BlockArguments& arguments, const Network& block, const json& configuration) {
  ResultTable table;
  table.summary["network"] = json::parse(to_json(block));
  json all{{"network", table.summary["network"]}, {"depth", arguments.task.depth}};
  all.update(configuration);
  table.origin = {"propagation network", std::move(all)};
  return table;
}

json start_configuration(const BlockArguments& arguments, const Matrix<double>& start) {
  const BlockTask& task = arguments.task;
  json configuration{{"gradients", arguments.gradients}};
  if (!arguments.gram.empty()) {
    configuration["gram"] = recorded_gram(arguments, start);
  } else {
    configuration["tokens"] = task.tokens;
    configuration["q0"] = task.q0.value_or(1);
    if (task.tokens > 1) configuration["c0"] = task.c0;
  }
  if (!task.has_networks) return configuration;
  configuration["networks"] = task.sampling.networks;
  configuration["width"] = task.sampling.width;
  if (arguments.options.has("heads")) configuration["heads"] = task.sampling.heads.count;
  return configuration;
}

json variation_configuration(const BlockArguments& arguments) {
  json configuration{{"tokens", arguments.task.tokens}, {"vary", arguments.vary}};
  if (arguments.task.q0) configuration["q0"] = *arguments.task.q0;
  return configuration;
}

/// Whether a layer of this kind stands anywhere in a network's file.
bool has_kind(const json& part, const char* kind) {
  if (part.is_object() && part.value("layer", json()) == kind) return true;
  return part.is_structured() &&
         std::any_of(part.begin(), part.end(), [&](const json& inner) { return has_kind(inner, kind); });
}

/// Slices of a head are equally wide.
void check_heads(const BlockArguments& arguments, const Network& block) {
  const bool attends = has_kind(json::parse(to_json(block)), "attention");
  if (arguments.options.has("heads") && !attends)
    throw ArgumentError("--heads: has no effect on a block without attention; leave it out");
  const Index heads = arguments.task.sampling.heads.count, width = arguments.task.sampling.width;
  if (arguments.task.has_networks && attends && width % heads != 0)
    throw ArgumentError(fmt::format("--heads: expected a divisor of --width, {}, got {}", width, heads));
}

void write_grams(const std::filesystem::path& file, const std::vector<PropagatedTokens>& tokens) {
  if (file.empty()) return;
  std::vector<double> values;
  for (const PropagatedTokens& one : tokens)
    values.insert(values.end(), one.gram.data(), one.gram.data() + one.gram.size());
  const auto n = static_cast<std::size_t>(tokens.front().gram.rows());
  data::write_npy(file, values.data(), std::vector<std::size_t>{tokens.size(), n, n});
}

json gradients_json(const std::vector<LayerGradients>& gradients) {
  json layers = json::array();
  for (const LayerGradients& layer : gradients) {
    json blocks = json::array();
    for (const Estimate& estimate : layer.blocks) blocks.push_back(estimate_json(estimate));
    layers.push_back({{"layer", layer.path}, {"kind", layer.kind}, {"blocks", std::move(blocks)}});
    if (!layer.parameter.empty()) layers.back()["parameter"] = layer.parameter;
  }
  return layers;
}

/// compute(run) with a bar of its own.
template <typename Compute>
auto with_bar(const char* label, RunControl run, const Compute& compute) {
  ProgressBar bar(label, Counted::steps, run.threads);
  run.progress = [&](std::ptrdiff_t done, std::ptrdiff_t total) { bar.show(done, total); };
  return compute(run);
}

/// Nothing unless networks were asked for.
SampledBlock sampled_beside(const BlockArguments& arguments, const Network& block,
                            const Matrix<double>& start) {
  if (!arguments.task.has_networks) return {};
  return with_bar("networks", arguments.control(), [&](const RunControl& run) {
    return sample_block(block, start, arguments.task.depth, arguments.task.sampling, run);
  });
}

void run_block(const BlockArguments& arguments, const Network& block) {
  const Matrix<double> start = start_of(arguments);
  const RunControl control = arguments.control();
  const auto tokens = with_bar("blocks", control, [&](const RunControl& run) {
    return propagate(block, start, arguments.task.depth, run);
  });
  ResultTable table = block_table(arguments, block, start_configuration(arguments, start));
  if (start.rows() > 1) {
    const BlockExponents exponents = with_bar("exponents", control, [&](const RunControl& run) {
      return block_exponents(block, start.rows(), arguments.task.depth, {}, run);
    });
    table.summary["exponents"] = block_exponent_results(exponents);
    note_angles(exponents, "lambda_a_log", table);
  }
  table.columns = {"block"};
  for (std::size_t l = 0; l < tokens.size(); ++l) table.rows.push_back({static_cast<double>(l)});
  append_columns(
      table, token_columns(tokens),
      {"q", "q_error", "cosine", "cosine_error", "log_gradient", "log_gradient_error", "product_ratio"});
  if (start.rows() == 1)
    for (const char* name : {"cosine", "product_ratio", "networks_cosine", "networks_cosine_error"})
      table.notes[name] = "a single token has no angle";
  std::vector<LayerGradients> gradients;
  if (arguments.gradients)
    gradients = with_bar("gradients", control, [&](const RunControl& run) {
      return layer_gradients(block, start, arguments.task.depth, run);
    });
  if (!gradients.empty()) table.summary["layer_gradients"] = gradients_json(gradients);
  const SampledBlock networks = sampled_beside(arguments, block, start);
  if (!networks.tokens.empty()) {
    append_columns(table, token_columns(networks.tokens), {"q", "q_error", "cosine", "cosine_error"},
                   "networks_");
    table.summary["networks"] = {{"width", arguments.task.sampling.width},
                                 {"networks", arguments.task.sampling.networks},
                                 {"heads", arguments.task.sampling.heads.count},
                                 {"layer_gradients", gradients_json(networks.gradients)}};
    table.origin.seed = arguments.task.sampling.seed;
  }
  write_grams(arguments.grams, tokens);
  write_table(arguments.output, table);
  if (!arguments.output.plot.empty())
    draw_output_file(arguments.output.plot, gnuplot_script(block_picture({tokens, gradients}, networks)),
                     arguments.stop);
}

/// Says at how many points of the grid equal tokens do not stay equal.
void note_points_without_angles(const std::vector<VariedExponents>& grid, ResultTable& table) {
  const auto parts = [](const VariedExponents& point) { return !point.exponents.no_angles.empty(); };
  const auto first = std::find_if(grid.begin(), grid.end(), parts);
  if (first == grid.end()) return;
  BlockExponents noted = first->exponents;
  noted.no_angles = fmt::format("at {} of {} points: {}", std::count_if(grid.begin(), grid.end(), parts),
                                grid.size(), noted.no_angles);
  note_angles(noted, "lambda_a_log", table);
}

void run_variation(const BlockArguments& arguments, const Network& block) {
  if (!arguments.gram.empty() || arguments.options.has("c0") || arguments.gradients ||
      !arguments.grams.empty() || arguments.task.has_networks)
    throw ArgumentError(
        "--vary gives the exponents from equal tokens: leave out --gram, --c0, --gradients, --grams and "
        "--networks");
  const BlockVariation variation = variation_of(block, arguments.vary);
  const auto with_run = [&](const char* label, const auto& compute) {
    return with_bar(label, arguments.control(), [&](const RunControl& control) {
      return compute(VariationRun{arguments.task.tokens, arguments.task.depth, arguments.task.q0, control});
    });
  };
  const auto grid = with_run("grid", [&](const VariationRun& run) { return exponents_over(variation, run); });
  const auto zeros = [&](const char* label, ZeroOf which) {
    return with_run(label, [&](const VariationRun& run) { return zeros_over(variation, grid, which, run); });
  };
  ResultTable table = block_table(arguments, block, variation_configuration(arguments));
  for (const VariedNumber& number : variation.numbers()) table.columns.push_back(number.path);
  for (const char* name : {"start_norm", "at_fixed_point", "norm_growth", "lambda_a_log", "lambda_g"})
    table.columns.emplace_back(name);
  for (const VariedExponents& point : grid) {
    table.rows.push_back(point.values);
    const BlockExponents& exponents = point.exponents;
    for (const double value : {exponents.start_norm, exponents.at_fixed_point ? 1.0 : 0.0,
                               exponents.norm.value, exponents.angle.value, exponents.gradient.value})
      table.rows.back().push_back(value);
  }
  const auto angle = zeros("zeros of lambda_a", ZeroOf::angle);
  const auto gradient = zeros("zeros of lambda_g", ZeroOf::gradient);
  table.summary["lambda_a_zero"] = angle.points;
  table.summary["lambda_g_zero"] = gradient.points;
  note_points_without_angles(grid, table);
  write_table(arguments.output, table);
  if (!arguments.output.plot.empty())
    draw_output_file(arguments.output.plot,
                     gnuplot_script(variation_picture(variation, grid, angle, gradient)), arguments.stop);
}

void run_block_command(BlockArguments arguments) {
  check_output(arguments.output, {.read = {{"the network", arguments.network}, {"--gram", arguments.gram}},
                                  .written = {{"--grams", arguments.grams}}});
  const Network block = network_from_argument(arguments.network, 1);
  arguments.task = arguments.options.read(read_block_task);
  check_heads(arguments, block);
  try {
    if (arguments.vary.empty())
      run_block(arguments, block);
    else
      run_variation(arguments, block);
  } catch (const NetworkError& error) {
    // Those of --vary name their option.
    if (std::string_view(error.what()).starts_with("--")) throw;
    rethrow_named(arguments.network);
  }
}

/// The block, the tokens before it, and networks beside it.
void add_start_options(CLI::App& command, BlockArguments& arguments) {
  add_value(command, "network", arguments.network, "Network file with the layers of one block", "NETWORK")
      ->required();
  arguments.options.add_to(command, computation("sample_block").own);
  for (const char* of_networks : {"--width", "--heads", "--seed"})
    command.get_option(of_networks)->needs(command.get_option("--networks"));
  add_value(command, "--gram", arguments.gram,
            "Gram matrix [tokens, tokens] to start from, in place of --tokens, --q0 and --c0", "FILE.npy");
  add_value(command, "--grams", arguments.grams,
            "Where to write the Gram matrices [depth + 1, tokens, tokens]", "FILE.npy");
  command.add_flag("--gradients", arguments.gradients, "Gradients of every layer of every block, too");
}

}  // namespace

void add_propagation_network_command(CLI::App& propagation, const RunContext& context) {
  auto arguments = std::make_shared<BlockArguments>();
  arguments->stop = context.interrupt.token();
  CLI::App* command = propagation.add_subcommand(
      "network",
      "Norms, angles and gradients after a block of any layers, repeated, by the kernel recursion");
  add_start_options(*command, *arguments);
  add_value(*command, "--vary", arguments->vary,
            "Exponents over a number of the network file: PATH=FROM:TO:COUNT[:linear|log]; once or twice",
            "SPEC");
  add_number(*command, "--threads", arguments->threads, "Threads, 0 for all", thread_count(), "N");
  add_output_options(*command, arguments->output,
                     "Norms, angles and gradients against depth, or the exponents");
  command->footer(
      "Examples:\n"
      "  widelimit propagation network block.json --tokens 32 --depth 24 --gradients --plot block.png\n"
      "  widelimit propagation network block.json --vary 'layers[0].branches[1].scale=0.1:0.9:9' "
      "--vary 'layers[1].branches[1].scale=0.1:0.9:9' --plot phases.png");
  command->callback([arguments] { run_block_command(*arguments); });
}

}  // namespace widelimit::cli
