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
#include "widelimit/propagation/sampled_block.hpp"

namespace widelimit::cli {

using namespace propagation;
using nlohmann::json;
using numerics::Estimate;

namespace {

struct BlockArguments {
  std::string network;
  std::optional<Index> given_tokens;
  Index depth = 16;
  std::optional<double> q0, c0;
  std::optional<Index> given_heads;
  std::filesystem::path gram, grams;
  bool gradients = false;
  SampledBlockOptions sampling = {.networks = 0};
  std::vector<std::string> vary;
  int threads = 0;
  PropagationOutput output;
  std::stop_token stop;

  [[nodiscard]] Index tokens() const { return given_tokens.value_or(64); }

  [[nodiscard]] RunControl control() const {
    RunControl run;
    run.threads = threads;
    run.stop = stop;
    return run;
  }
};

json exponents_json(const BlockExponents& exponents) {
  return {{"start_norm", exponents.start_norm},
          {"at_fixed_point", exponents.at_fixed_point},
          {"norm_growth", estimate_json(exponents.norm)},
          {"lambda_a_log", estimate_json(exponents.angle)},
          {"lambda_a_log_last_block", estimate_json(exponents.last_angle)},
          {"lambda_g", estimate_json(exponents.gradient)}};
}

Matrix<double> start_of(const BlockArguments& arguments) {
  if (!arguments.gram.empty()) {
    if (arguments.q0 || arguments.c0 || arguments.given_tokens)
      throw ArgumentError(
          "--tokens, --q0 and --c0 are the start where there is no --gram: give one or the other");
    const auto array = read_finite<double>(arguments.gram);
    if (array.dimension() != 2 || array.shape(0) != array.shape(1))
      fail_in(arguments.gram, "expected a Gram matrix [tokens, tokens]");
    const auto n = static_cast<Index>(array.shape(0));
    return Eigen::Map<const Matrix<double>>(array.data(), n, n);
  }
  if (arguments.c0 && !arguments.q0)
    throw ArgumentError("--c0: needs --q0 as well, the squared norm / width of the tokens: give --q0 1");
  if (arguments.c0 && arguments.tokens() == 1)
    throw ArgumentError("--c0: one token has no cosine; leave it out");
  const double q0 = arguments.q0.value_or(1), c0 = arguments.c0.value_or(0);
  const double least = arguments.tokens() > 1 ? -1 / static_cast<double>(arguments.tokens() - 1) : -1;
  if (c0 < least)
    throw ArgumentError(fmt::format("--c0: expected a number from {:g} to 1 for {} tokens, got {}", least,
                                    arguments.tokens(), c0));
  Matrix<double> gram = Matrix<double>::Constant(arguments.tokens(), arguments.tokens(), q0 * c0);
  gram.diagonal().setConstant(q0);
  return gram;
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
  json all{{"network", table.summary["network"]}, {"depth", arguments.depth}};
  all.update(configuration);
  table.origin = {"propagation network", std::move(all)};
  return table;
}

json start_configuration(const BlockArguments& arguments, const Matrix<double>& start) {
  json configuration{{"gradients", arguments.gradients}};
  if (!arguments.gram.empty()) {
    configuration["gram"] = recorded_gram(arguments, start);
  } else {
    configuration["tokens"] = arguments.tokens();
    configuration["q0"] = arguments.q0.value_or(1);
    if (arguments.tokens() > 1) configuration["c0"] = arguments.c0.value_or(0);
  }
  if (arguments.sampling.networks == 0) return configuration;
  configuration["networks"] = arguments.sampling.networks;
  configuration["width"] = arguments.sampling.width;
  if (arguments.given_heads) configuration["heads"] = *arguments.given_heads;
  return configuration;
}

json variation_configuration(const BlockArguments& arguments) {
  json configuration{{"tokens", arguments.tokens()}, {"vary", arguments.vary}};
  if (arguments.q0) configuration["q0"] = *arguments.q0;
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
  if (arguments.given_heads && !attends)
    throw ArgumentError("--heads: has no effect on a block without attention; leave it out");
  const Index heads = arguments.sampling.heads.count, width = arguments.sampling.width;
  if (arguments.sampling.networks > 0 && attends && width % heads != 0)
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
  if (arguments.sampling.networks == 0) return {};
  return with_bar("networks", arguments.control(), [&](const RunControl& run) {
    return sample_block(block, start, arguments.depth, arguments.sampling, run);
  });
}

void run_block(const BlockArguments& arguments, const Network& block) {
  const Matrix<double> start = start_of(arguments);
  const RunControl control = arguments.control();
  const auto tokens = with_bar("blocks", control, [&](const RunControl& run) {
    return propagate(block, start, arguments.depth, run);
  });
  ResultTable table = block_table(arguments, block, start_configuration(arguments, start));
  if (start.rows() > 1)
    table.summary["exponents"] = with_bar("exponents", control, [&](const RunControl& run) {
      return exponents_json(block_exponents(block, start.rows(), arguments.depth, {}, run));
    });
  table.columns = {
      "block",        "q", "q_error", "cosine", "cosine_error", "log_gradient", "log_gradient_error",
      "product_ratio"};
  for (const PropagatedTokens& one : tokens)
    table.rows.push_back({static_cast<double>(table.rows.size()), one.squared_norm.value,
                          one.squared_norm.standard_error, one.cosine.value, one.cosine.standard_error,
                          one.log_gradient.value, one.log_gradient.standard_error, one.product_ratio.value});
  if (start.rows() == 1)
    for (const char* name : {"cosine", "product_ratio", "networks_cosine", "networks_cosine_error"})
      table.notes[name] = "a single token has no angle";
  std::vector<LayerGradients> gradients;
  if (arguments.gradients)
    gradients = with_bar("gradients", control, [&](const RunControl& run) {
      return layer_gradients(block, start, arguments.depth, run);
    });
  if (!gradients.empty()) table.summary["layer_gradients"] = gradients_json(gradients);
  const SampledBlock networks = sampled_beside(arguments, block, start);
  if (!networks.tokens.empty()) {
    for (const char* name : {"networks_q", "networks_q_error", "networks_cosine", "networks_cosine_error"})
      table.columns.emplace_back(name);
    for (std::size_t l = 0; l < networks.tokens.size(); ++l)
      for (const Estimate& measured : {networks.tokens[l].squared_norm, networks.tokens[l].cosine}) {
        table.rows[l].push_back(measured.value);
        table.rows[l].push_back(measured.standard_error);
      }
    table.summary["networks"] = {{"width", arguments.sampling.width},
                                 {"networks", arguments.sampling.networks},
                                 {"heads", arguments.sampling.heads.count},
                                 {"layer_gradients", gradients_json(networks.gradients)}};
    table.origin.seed = arguments.sampling.seed;
  }
  write_grams(arguments.grams, tokens);
  write_table(arguments.output, table);
  if (!arguments.output.plot.empty())
    draw_output_file(arguments.output.plot, block_script({tokens, gradients}, networks), arguments.stop);
}

void run_variation(const BlockArguments& arguments, const Network& block) {
  if (!arguments.gram.empty() || arguments.c0 || arguments.gradients || !arguments.grams.empty() ||
      arguments.sampling.networks != 0)
    throw ArgumentError(
        "--vary gives the exponents from equal tokens: leave out --gram, --c0, --gradients, --grams and "
        "--networks");
  const BlockVariation variation = variation_of(block, arguments.vary);
  const auto with_run = [&](const char* label, const auto& compute) {
    return with_bar(label, arguments.control(), [&](const RunControl& control) {
      return compute(VariationRun{arguments.tokens(), arguments.depth, arguments.q0, control});
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
  write_table(arguments.output, table);
  if (!arguments.output.plot.empty())
    draw_output_file(arguments.output.plot, variation_script(variation, grid, angle, gradient),
                     arguments.stop);
}

void run_block_command(const BlockArguments& arguments) {
  check_output(arguments.output, {.read = {{"the network", arguments.network}, {"--gram", arguments.gram}},
                                  .written = {{"--grams", arguments.grams}}});
  const Network block = network_from_argument(arguments.network, 1);
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

/// The block, and the tokens before it.
void add_start_options(CLI::App& command, BlockArguments& arguments) {
  add_value(command, "network", arguments.network, "Network file with the layers of one block", "NETWORK")
      ->required();
  add_value(command, "--tokens", arguments.given_tokens, "Number of tokens, 1 to 16384 [64]",
            whole_number<Index>(1, 1 << 14), "N");
  add_number(command, "--depth", arguments.depth, "Number of blocks, 1 to 65536",
             whole_number<Index>(1, 1 << 16), "L");
  add_value(command, "--q0", arguments.q0,
            "Squared norm / width at the start, above 0 [1; with --vary the fixed point]", positive_number(),
            "Q");
  add_value(command, "--c0", arguments.c0,
            "Cosine of two tokens at the start, from -1 / (n - 1) to 1, together with --q0 [0]",
            number_from_to(-1, 1), "C");
  add_value(command, "--gram", arguments.gram, "Gram matrix [tokens, tokens] to start from, in place of both",
            "FILE.npy");
  add_value(command, "--grams", arguments.grams,
            "Where to write the Gram matrices [depth + 1, tokens, tokens]", "FILE.npy");
}

void add_sampling_options(CLI::App& command, BlockArguments& arguments) {
  command.add_flag("--gradients", arguments.gradients, "Gradients of every layer of every block, too");
  CLI::Option* networks = add_value(command, "--networks", arguments.sampling.networks,
                                    "Random networks to compare with the theory, 2 to 1048576 [none]",
                                    whole_number<Index>(2, 1 << 20), "N");
  add_value(command, "--width", arguments.sampling.width, "Their width, 1 to 65536 [128]",
            whole_number<Index>(1, 1 << 16), "D")
      ->needs(networks);
  command
      .add_option_function<Index>(
          "--heads",
          [&arguments](const Index& heads) {
            arguments.given_heads = heads;
            arguments.sampling.heads.count = heads;
          },
          "Their heads, a divisor of the width [8]")
      ->needs(networks)
      ->check(whole_number<Index>(1, 1 << 16))
      ->type_name("H");
  add_value(command, "--seed", arguments.sampling.seed, "Of their weights and tokens [0]", seed_number(), "S")
      ->needs(networks);
}

}  // namespace

void add_propagation_network_command(CLI::App& propagation, const RunContext& context) {
  auto arguments = std::make_shared<BlockArguments>();
  arguments->stop = context.interrupt.token();
  CLI::App* command = propagation.add_subcommand(
      "network",
      "Norms, angles and gradients after a block of any layers, repeated, by the kernel recursion");
  add_start_options(*command, *arguments);
  add_sampling_options(*command, *arguments);
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
