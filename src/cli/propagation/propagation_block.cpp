#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "cli/options/ranges.hpp"
#include "cli/output/output_folder.hpp"
#include "cli/output/result_text.hpp"
#include "cli/program/run_context.hpp"
#include "cli/propagation/propagation_model.hpp"
#include "widelimit/error.hpp"
#include "widelimit/network/network_file.hpp"

/// The transformer of the closed forms as a block of the kernel recursion.
namespace widelimit::cli {

using nlohmann::json;
using propagation::Index;

namespace {

// What `propagation network` takes.
constexpr Index most_block_tokens = 1 << 14, most_blocks = 1 << 16;

/// Without a given factor the skip connection follows from the strength.
json skip_and(double strength, const std::optional<double>& skip, json layers) {
  const json kept{{"scale", skip.value_or(std::sqrt(1 - strength * strength))}, {"layers", json::array()}};
  layers.insert(layers.begin(), json{{"layer", "rms_norm"}});
  json branches = json::array({kept});
  if (strength > 0) branches.push_back({{"scale", strength}, {"layers", std::move(layers)}});
  return {{"layer", "sum"}, {"branches", std::move(branches)}};
}

json attention_branch(const PropagationModel& model, double sigma_A) {
  return json::array({{{"layer", "attention"},
                       {"scaling", "inverse_sqrt_width"},
                       {"query_key_std", sigma_A},
                       {"causal", model.causal}}});
}

json mlp_branch(const std::string& activation, const propagation::Parameters& parameters) {
  const auto dense = [](double gain) { return json{{"layer", "dense"}, {"weight_variance", gain * gain}}; };
  json layers = json::array();
  for (int k = 0; k < parameters.mlp_depth; ++k) {
    layers.push_back(dense(parameters.sigma_w));
    layers.push_back({{"layer", activation == "linear" ? "identity" : activation}});
  }
  layers.push_back(dense(parameters.sigma_out.value(parameters.sigma_w)));
  return layers;
}

/// A strength of 0 leaves its branch out, and its skip connection too where that changes nothing.
std::string block_text(const PropagationModel& model, const propagation::Parameters& parameters) {
  json layers = json::array();
  if (parameters.alpha_A > 0 || parameters.skip_A.value_or(1) != 1)
    layers.push_back(
        skip_and(parameters.alpha_A, parameters.skip_A, attention_branch(model, parameters.sigma_A)));
  if (parameters.alpha_M > 0 || parameters.skip_M.value_or(1) != 1)
    layers.push_back(
        skip_and(parameters.alpha_M, parameters.skip_M, mlp_branch(model.activation, parameters)));
  return to_json(parse_network(json{{"widelimit", 1}, {"layers", std::move(layers)}}.dump()));
}

/// The command that needs no average, or what keeps it from being one.
std::string exact_command(const PropagationModel& model, Index depth, const std::string& start) {
  if (model.tokens > most_block_tokens || depth > most_blocks)
    return fmt::format("without that average, up to {} tokens and {} blocks: widelimit propagation network",
                       most_block_tokens, most_blocks);
  const bool has_file = !model.block.empty();
  return fmt::format("without that average: {}widelimit propagation network {} --depth {} {}",
                     has_file ? "" : "the same command with --block block.json, then ",
                     has_file ? shell_quoted(model.block.string()) : "block.json", depth, start);
}

}  // namespace

void add_block_option(CLI::App& command, PropagationModel& model) {
  add_value(command, "--block", model.block,
            "Also the block as a network file, its attention sampled rather than averaged, for "
            "widelimit propagation network",
            "FILE.json");
}

void write_block(const PropagationModel& model, const propagation::Parameters& parameters) {
  if (!model.block.empty()) files::replace_file(model.block, block_text(model, parameters));
}

double largest_gap(const std::vector<propagation::TokenState>& states) {
  double largest = 0;
  for (const propagation::TokenState& state : states) largest = std::max(largest, state.cosine_gap());
  return largest;
}

std::string start_options(const PropagationModel& model, double q0, double c0) {
  return fmt::format("--tokens {} --q0 {} --c0 {}", model.tokens, q0, c0);
}

void warn_of_annealing(const PropagationModel& model, double largest_gap, Index depth,
                       const std::string& start) {
  const double limit = propagation::largest_annealed_gap(static_cast<double>(model.tokens), model.sigma_A);
  if (largest_gap <= limit) return;
  warn(
      "the theory averages attention's numerator and denominator apart (annealed), which "
      "is good up to 1 - cosine = ln(tokens) / (2 sigma_A^2) = {:.3g}, but tokens come to {:.3g}; {}",
      limit, largest_gap, exact_command(model, depth, start));
}

}  // namespace widelimit::cli
