#include "widelimit/propagation/transformer.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "propagation/arguments.hpp"
#include "propagation/token_averages.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::propagation {

using nlohmann::json;

namespace {

OutputGain read_output_gain(ConfigReader& fields) {
  if (!fields.has("sigma_out")) return OutputGain::unit();
  const json& value = fields.value("sigma_out");
  if (value.is_number()) return OutputGain::fixed(value.get<double>());
  return value == "shared" ? OutputGain::shared() : OutputGain::unit();
}

/// The field of one branch, or that of both.
double read_strength(ConfigReader& fields, const char* own) {
  return fields.number(fields.has(own) ? own : "alpha");
}
std::optional<double> read_skip(ConfigReader& fields, const char* own) {
  const char* field = fields.has(own) ? own : "skip";
  return fields.has(field) ? std::optional(fields.number(field)) : std::nullopt;
}

/// Where exponents are sums over blocks.
void require_blocks(const ConfigReader& fields, const Transformer& transformer) {
  const double depth = transformer.depth;
  if (depth != std::round(depth) || depth < 1 || depth > largest_count)
    fields.fail("depth", fmt::format("expected a whole number of blocks from 1 to {:g}, got {}",
                                     largest_count, depth));
}

/// Nothing unless it is given.
std::optional<Index> read_spread_width(ConfigReader& fields, const Transformer& transformer) {
  if (!fields.has("width")) return std::nullopt;
  if (transformer.mask == AttentionMask::causal)
    fields.fail(
        "width",
        "how networks scatter is known for full attention; leave it or the causal mask out (simulated "
        "gradients measure it)");
  return fields.integer("width");
}

/// Without a given factor the skip connection follows from the strength.
json skip_and(double strength, const std::optional<double>& skip, json layers) {
  const json kept{{"scale", skip.value_or(std::sqrt(1 - strength * strength))}, {"layers", json::array()}};
  layers.insert(layers.begin(), json{{"layer", "rms_norm"}});
  json branches = json::array({kept});
  if (strength > 0) branches.push_back({{"scale", strength}, {"layers", std::move(layers)}});
  return {{"layer", "sum"}, {"branches", std::move(branches)}};
}

json attention_branch(const Transformer& transformer) {
  return json::array({{{"layer", "attention"},
                       {"scaling", "inverse_sqrt_width"},
                       {"query_key_std", transformer.parameters.sigma_A},
                       {"causal", transformer.mask == AttentionMask::causal}}});
}

json mlp_branch(const Transformer& transformer) {
  const auto dense = [](double gain) { return json{{"layer", "dense"}, {"weight_variance", gain * gain}}; };
  const Parameters& parameters = transformer.parameters;
  json layers = json::array();
  for (int k = 0; k < parameters.mlp_depth; ++k) {
    layers.push_back(dense(parameters.sigma_w));
    layers.push_back({{"layer", transformer.activation == "linear" ? "identity" : transformer.activation}});
  }
  layers.push_back(dense(parameters.sigma_out.value(parameters.sigma_w)));
  return layers;
}

const Choices<std::optional<FreeParameters>>& free_parameters() {
  static const Choices<std::optional<FreeParameters>> known{
      {"strengths_and_gain", FreeParameters::strengths_and_gain},
      {"sigma_w", FreeParameters::gain},
      {"alpha_M", FreeParameters::mlp_strength},
      {"alpha_A", FreeParameters::attention_strength},
      {"balanced", std::nullopt}};
  return known;
}

}  // namespace

ExponentOptions Transformer::exponent_options() const { return {.depth = depth, .mask = mask}; }

Network Transformer::block() const {
  json layers = json::array();
  if (parameters.alpha_A > 0 || parameters.skip_A.value_or(1) != 1)
    layers.push_back(skip_and(parameters.alpha_A, parameters.skip_A, attention_branch(*this)));
  if (parameters.alpha_M > 0 || parameters.skip_M.value_or(1) != 1)
    layers.push_back(skip_and(parameters.alpha_M, parameters.skip_M, mlp_branch(*this)));
  return parse_network(json{{"widelimit", 1}, {"layers", std::move(layers)}}.dump());
}

Transformer read_transformer(ConfigReader& fields) {
  Transformer read;
  Parameters& parameters = read.parameters;
  parameters.tokens = fields.integer("tokens");
  parameters.alpha_A = read_strength(fields, "alpha_A");
  parameters.alpha_M = read_strength(fields, "alpha_M");
  if (parameters.alpha_A == 0 && parameters.alpha_M == 0)
    fields.fail(
        fields.has("alpha") ? "alpha" : "alpha_A",
        "expected a strength above 0 of one branch at least, got 0 for both: then no block changes anything");
  parameters.skip_A = read_skip(fields, "skip_A");
  parameters.skip_M = read_skip(fields, "skip_M");
  parameters.sigma_w = fields.number("sigma_w");
  parameters.sigma_out = read_output_gain(fields);
  parameters.sigma_A = fields.number("sigma_A");
  parameters.mlp_depth = static_cast<int>(fields.integer("mlp_depth"));
  read.activation = fields.text("activation");
  parameters.activation = activation_named(read.activation);
  if (fields.knows("depth")) read.depth = fields.number("depth");
  if (fields.knows("causal") && fields.boolean("causal")) read.mask = AttentionMask::causal;
  // Formulas of a causal mask, and of norms without a fixed point, go from block to block.
  if (fields.knows("depth") && (read.mask == AttentionMask::causal || !has_fixed_norm(parameters)))
    require_blocks(fields, read);
  if (read.mask == AttentionMask::causal && parameters.tokens > most_averaged_tokens)
    fields.fail("tokens", fmt::format("expected at most {} under a causal mask, got {}", most_averaged_tokens,
                                      parameters.tokens));
  return read;
}

ExponentOptions read_exponent_options(ConfigReader& fields, const Transformer& transformer) {
  ExponentOptions options = transformer.exponent_options();
  if (fields.knows("one_block") && fields.boolean("one_block")) options.angle = AngleMeasure::one_block;
  if (!fields.knows("published") || !fields.boolean("published")) return options;
  if (options.mask == AttentionMask::causal)
    fields.fail("published", "the printed formulas are for full attention; leave it or the causal mask out");
  options.formula = Formula::published;
  return options;
}

double CosineStart::norm(const Parameters& parameters) const {
  return q0 ? *q0 : equal_tokens_norm(parameters);
}

TokenDistribution CosineStart::distribution(const Parameters& parameters) const {
  return q0 ? TokenDistribution::gaussian(*q0, c0) : TokenDistribution::equal(norm(parameters));
}

CosineStart read_start(ConfigReader& fields) {
  CosineStart start;
  if (fields.has("q0") || !fields.default_of("q0").is_null()) start.q0 = fields.number("q0");
  start.c0 = fields.number("c0");
  return start;
}

TokenDistribution GroupStart::distribution() const {
  return TokenDistribution::two_groups(q0, p_inside, p_across);
}

Matrix<double> GroupStart::gram(Index tokens) const {
  const Index half = tokens / 2;
  Matrix<double> gram = Matrix<double>::Constant(tokens, tokens, p_across);
  gram.topLeftCorner(half, half).setConstant(p_inside);
  gram.bottomRightCorner(tokens - half, tokens - half).setConstant(p_inside);
  gram.diagonal().setConstant(q0);
  return gram;
}

GroupStart read_groups(ConfigReader& fields) {
  GroupStart groups{fields.number("q0"), fields.number("p_inside"), fields.number("p_across")};
  if (!(groups.p_across <= groups.p_inside && groups.p_inside <= groups.q0))
    fields.fail("p_inside", fmt::format("expected p_across <= p_inside <= q0, got {}, {} and {}",
                                        groups.p_across, groups.p_inside, groups.q0));
  return groups;
}

SampleOptions read_sampling(ConfigReader& fields, AttentionMask mask) {
  SampleOptions options;
  options.width = fields.integer("width");
  options.networks = fields.integer("networks");
  options.mask = mask;
  options.seed = static_cast<std::uint64_t>(fields.integer("seed"));
  return options;
}

Simulation<CosineStart> read_simulation(ConfigReader& fields) {
  const Transformer transformer = read_transformer(fields);
  const CosineStart start = read_start(fields);
  return {transformer, start, read_sampling(fields, transformer.mask)};
}

Simulation<GroupStart> read_group_simulation(ConfigReader& fields) {
  const Transformer transformer = read_transformer(fields);
  const GroupStart start = read_groups(fields);
  return {transformer, start, read_sampling(fields, transformer.mask)};
}

ExponentTask read_exponents(ConfigReader& fields) {
  ExponentTask task{.transformer = read_transformer(fields)};
  task.formula = read_exponent_options(fields, task.transformer).formula;
  const bool has_norm = has_fixed_norm(task.transformer.parameters);
  if (task.formula == Formula::published && !has_norm)
    fields.fail(
        "published",
        "the printed formulas are those of a fixed point of the norm, which skip connections of 1 or more do "
        "not have; leave it out");
  task.width = read_spread_width(fields, task.transformer);
  if (task.width && task.formula == Formula::published)
    fields.fail("width",
                "networks scatter about the exponents as corrected; leave it or the printed formulas out");
  if (task.width) require_blocks(fields, task.transformer);
  return task;
}

Matrix<double> BlockTask::start() const {
  if (tokens == 1 && c0 != 0) throw ArgumentError("one token has no cosine; leave it out");
  const double least = tokens > 1 ? -1 / static_cast<double>(tokens - 1) : -1, q = q0.value_or(1);
  if (c0 < least)
    throw ArgumentError(
        fmt::format("expected a number from {:g} to 1 for {} tokens, got {}", least, tokens, c0));
  Matrix<double> gram = Matrix<double>::Constant(tokens, tokens, q * c0);
  gram.diagonal().setConstant(q);
  return gram;
}

BlockTask read_block_task(ConfigReader& fields) {
  BlockTask task{.tokens = fields.integer("tokens"), .depth = fields.integer("depth")};
  if (fields.has("q0")) task.q0 = fields.number("q0");
  task.c0 = fields.number("c0");
  task.has_networks = fields.has("networks");
  if (task.has_networks) task.sampling.networks = fields.integer("networks");
  task.sampling.width = fields.integer("width");
  task.sampling.heads.count = fields.integer("heads");
  task.sampling.seed = static_cast<std::uint64_t>(fields.integer("seed"));
  return task;
}

std::vector<std::string> free_parameter_words() {
  std::vector<std::string> words;
  for (const auto& [word, meaning] : free_parameters()) words.push_back(word);
  return words;
}

CriticalTask read_critical(ConfigReader& fields) {
  CriticalTask task{.transformer = read_transformer(fields)};
  task.free = fields.choice("free", free_parameters());
  if (task.free == FreeParameters::strengths_and_gain) task.tolerance = fields.number("tolerance");
  task.width = read_spread_width(fields, task.transformer);
  return task;
}

CriticalInitialisation CriticalTask::found() const {
  const Parameters& parameters = transformer.parameters;
  return free ? critical_initialisation(parameters, transformer.blocks(), *free, tolerance, transformer.mask)
              : balanced_initialisation(parameters, transformer.blocks(), 1, 1, transformer.mask);
}

}  // namespace widelimit::propagation
