#include "widelimit/propagation/fields.hpp"

#include <limits>
#include <map>
#include <string>

#include "propagation/arguments.hpp"
#include "widelimit/propagation/transformer.hpp"

namespace widelimit::propagation {
namespace {

using V = FieldValues;

constexpr Index most_networks = 1 << 20, widest = 1 << 16, widest_limit = Index{1} << 30;
constexpr double largest_gain = 1e6, largest_skip = 1e3;

/// Rows after which Parameters are read.
ConfigFields parameters_rows() {
  const V strength = V::within(0, 1), skip = V::within(0, largest_skip), gain = V::within(0, largest_gain);
  return {{"tokens", V::integer(2, 1'000'000'000), "256", "number of tokens n"},
          {"alpha", strength, "0.5", "strength of both branches"},
          {"alpha_A", strength, "alpha", "strength of the attention branch"},
          {"alpha_M", strength, "alpha", "strength of the MLP branch"},
          {"skip", skip, "sqrt(1 - strength^2)",
           "factor of both skip connections; 1, as in most transformers, lets norms grow with depth"},
          {"skip_A", skip, "skip", "that of the attention block alone"},
          {"skip_M", skip, "skip", "that of the MLP block alone"},
          {"sigma_w", gain, "1", "gain (a standard deviation) of the hidden MLP matrices"},
          {"sigma_out", V::words_or({"unit", "shared"}, gain), "unit",
           "that of the last MLP matrix, sigma_w if it is shared"},
          {"sigma_A", gain, "1", "scale of the attention scores"},
          {"mlp_depth", V::integer(1, 1'000'000), "2", "nonlinearities of the MLP"},
          {"activation", V::words(activation_names()), "tanh", "nonlinearity of the MLP"}};
}

ConfigFields transformer_rows(const V& depths) {
  return joined_fields(
      {parameters_rows(),
       {{"depth", depths, "16", "number of blocks L"},
        {"causal", V::boolean(), "false",
         "tokens attend to themselves and earlier ones only; exponents of up to 10 million tokens"}}});
}

/// Of formulas that hold at any depth.
ConfigFields of_any_depth() { return transformer_rows(V::within(1, largest_count)); }
ConfigFields of_whole_depth() { return transformer_rows(V::integer(1, static_cast<Index>(largest_count))); }

ConfigField published_row() {
  return {"published", V::boolean(), "false",
          "the paper's equations 18 and 19 as printed, with q_* in the place of q_M"};
}

ConfigField width_row() {
  return {"width", V::integer(2, widest_limit), "none",
          "also the intervals into which 90 of 100 networks of this width fall"};
}

ConfigField norm_row(const char* at_start) {
  return {"q0", V::above(0), at_start, "squared norm / width of tokens at the start"};
}

ConfigField cosine_row(double least, const char* at_start) {
  return {"c0", V::within(least, 1), at_start, "cosine of two tokens at the start"};
}

ConfigField seed_row(const char* meaning) {
  return {"seed", V::integer(0, std::numeric_limits<Index>::max()), "0", meaning};
}

ConfigFields sampling_rows(const char* networks) {
  return {{"width", V::integer(1, widest), "64", "width d of the networks"},
          {"networks", V::integer(2, most_networks), networks, "networks that are drawn"},
          seed_row("of their weights and tokens")};
}

ConfigFields simulation_rows(const ConfigFields& start) {
  return joined_fields({start, sampling_rows("32")});
}

ConfigFields phase_rows() {
  return {{"one_block", V::boolean(), "false",
           "lambda_a is the growth of angles in one block from norm 1, which the paper measures"},
          published_row()};
}

ConfigFields critical_rows() {
  return {{"free", V::words(free_parameter_words()), "strengths_and_gain",
           "what is chosen: both strengths at their given ratio and sigma_w, one parameter, or balanced, the "
           "sigma_w "
           "with lambda_g = -lambda_a"},
          {"tolerance", V::above(0), "0.1",
           "of strengths_and_gain: largest log growth of the squared gradient over the network"},
          width_row()};
}

ConfigFields fit_rows() {
  return {{"classes", V::integer(2, 1'000'000'000), "none",
           "classes of the task, whose log is the ceiling of losses"},
          {"bootstrap", V::integer(2, 1'000'000), "200", "draws after the standard errors of the weights"},
          seed_row("of these draws")};
}

ConfigFields block_rows() {
  return {
      {"tokens", V::integer(1, most_block_tokens), "64", "number of tokens"},
      {"depth", V::integer(1, most_blocks), "16", "number of blocks"},
      {"q0", V::above(0), "1; with --vary the fixed point", "squared norm / width of tokens at the start"},
      cosine_row(-1, "0"),
      {"networks", V::integer(2, most_networks), "none", "random networks to compare with the theory"},
      {"width", V::integer(1, widest), "128", "their width"},
      {"heads", V::integer(1, widest), "8", "their heads, a divisor of the width"},
      seed_row("of their weights and tokens")};
}

using Computations = std::map<std::string, Computation, std::less<>>;

Computations made_computations() {
  const ConfigFields any = of_any_depth(), whole = of_whole_depth();
  const ConfigFields gaussian{norm_row("1"), cosine_row(0, "0")};
  return {
      {"Parameters", {parameters_rows(), {}}},
      {"trajectory", {whole, {norm_row("1"), cosine_row(-1, "0")}}},
      {"exponents", {any, {published_row(), width_row()}}},
      {"phase_diagram", {any, phase_rows()}},
      {"critical", {whole, critical_rows()}},
      {"critical_values", {any, {}}},
      {"fit_losses", {any, fit_rows()}},
      {"simulate_trajectory", {whole, simulation_rows(gaussian)}},
      {"simulate_samples", {whole, simulation_rows(gaussian)}},
      {"simulate_angle",
       {any, simulation_rows({norm_row("the fixed point, or 1 without one"), cosine_row(0, "0.99")})}},
      {"simulate_gradient",
       {whole, simulation_rows({norm_row("equal tokens at the fixed point"), cosine_row(0, "0")})}},
      {"simulate_groups",
       {whole,
        simulation_rows({norm_row("1"),
                         {"p_inside", V::at_least(0), "0.75", "dot product within a half, p_across to q0"},
                         {"p_across", V::at_least(0), "0.5", "dot product across halves, 0 to p_inside"}})}},
      {"simulate_phase",
       {whole, joined_fields({{cosine_row(0, "0.99"),
                               {"one_block", V::boolean(), "false",
                                "angles from norm 1, as the paper measures them, not from the fixed point"}},
                              sampling_rows("8")})}},
      {"sample_block", {{}, block_rows()}}};
}

}  // namespace

const Computation& computation(std::string_view name) {
  static const Computations all = made_computations();
  const auto found = all.find(name);
  if (found == all.end()) throw std::out_of_range(std::string(name));
  return found->second;
}

}  // namespace widelimit::propagation
