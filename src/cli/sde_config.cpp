#include "cli/sde_config.hpp"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "json/json_value.hpp"
#include "numerics/memory.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"

namespace widelimit::cli {

using namespace covariance_sde;

namespace {

/// `suffix`: behind the names of the fields.
ResidualWeights read_weights(FieldReader& fields, const std::string& suffix) {
  const std::string squared = "gamma_squared" + suffix, root = "gamma" + suffix, shortcut = "lambda" + suffix;
  if (fields.has(squared) == fields.has(root))
    fields.fail(squared, fmt::format("give either {} or {}", squared, root));
  const bool by_root = fields.has(root);
  const double given = fields.number(by_root ? root : squared);
  if (by_root && given < 0) fields.fail(root, fmt::format("must be at least 0, got {}", given));
  if (!fields.has(shortcut)) return ResidualWeights::shaped(by_root ? given * given : given);
  const double lambda = fields.number(shortcut), gamma = by_root ? given : std::sqrt(given);
  if (lambda == 1 && gamma == 1) return ResidualWeights::unit();
  return ResidualWeights::from(lambda, gamma);
}

ResidualWeights read_residual(FieldReader& fields) { return read_weights(fields, ""); }

/// Of the feedforward block; nothing where it has those of the attention block.
std::optional<ResidualWeights> read_feedforward_residual(FieldReader& fields) {
  constexpr const char* suffix = "_feedforward";
  for (const char* name : {"gamma_squared", "gamma", "lambda"})
    if (fields.has(std::string(name) + suffix)) return read_weights(fields, suffix);
  return std::nullopt;
}

ShapedSlopes read_slopes(FieldReader& fields) {
  return {fields.number("c_plus", 0), fields.number("c_minus", -1)};
}

AttentionMask read_mask(FieldReader& fields) {
  return fields.choice("mask", {"full", "causal"}, "full") == "full" ? AttentionMask::full
                                                                     : AttentionMask::causal;
}

Matrix<double> read_square(FieldReader& fields, const nlohmann::json& rows) {
  if (!rows.is_array() || rows.empty())
    fields.fail("V0", fmt::format("must be a square matrix, one row a token, got {}", shown_json(rows)));
  const std::size_t m = rows.size();
  std::vector<double> values;
  for (std::size_t a = 0; a < m; ++a) {
    if (!rows[a].is_array() || rows[a].size() != m)
      fields.fail("V0", fmt::format("must be a square matrix of {} rows, got row {} = {}", m, a,
                                    shown_json(rows[a])));
    for (const nlohmann::json& entry : rows[a]) {
      if (!entry.is_number()) fields.fail("V0", fmt::format("must hold numbers, got {}", shown_json(entry)));
      values.push_back(entry.get<double>());
    }
  }
  return Eigen::Map<const Matrix<double>>(values.data(), static_cast<Index>(m), static_cast<Index>(m));
}

/// "V0", or "tokens" of equal "variance" and correlation "rho0".
Matrix<double> read_start(FieldReader& fields) {
  if (!fields.has("V0")) {
    const Index tokens = fields.integer("tokens", 2);
    if (tokens < 1) fields.fail("tokens", fmt::format("must be at least 1, got {}", tokens));
    const double m = static_cast<double>(tokens);
    numerics::require_memory("config.tokens", fmt::format("a covariance of {} tokens", tokens),
                             m * m * sizeof(double), "take fewer tokens");
    const double variance = fields.number("variance", 1);
    Matrix<double> v = Matrix<double>::Constant(tokens, tokens, variance * fields.number("rho0", 0.2));
    v.diagonal().setConstant(variance);
    return v;
  }
  return read_square(fields, fields.value("V0"));
}

StopBounds read_bounds(FieldReader& fields, StopBounds otherwise) {
  return {fields.number("lower", otherwise.lower), fields.number("upper", otherwise.upper)};
}

std::vector<double> read_times(FieldReader& fields) {
  if (fields.has("times")) return fields.numbers("times");
  if (fields.has("horizon")) return {fields.number("horizon")};
  const Index depth = fields.integer("depth"), width = fields.integer("width");
  for (const auto& [name, value] : {std::pair{"depth", depth}, std::pair{"width", width}})
    if (value < 1) fields.fail(name, fmt::format("must be at least 1, got {}", value));
  // T = depth / width, in this order: a layer is time 1 / n.
  return {static_cast<double>(depth) / static_cast<double>(width)};
}

ModelAttention read_attention(FieldReader& fields) {
  return {read_residual(fields), fields.number("temperature", 1), fields.integer("heads", 1)};
}

/// Model and attention of the setup.
void read_model(FieldReader& fields, SdeSetup& setup) {
  const std::string name = fields.choice("model", {"transformer", "attention", "resnet", "mlp"});
  if (name == "mlp") {
    setup.model = mlp_model(read_slopes(fields));
    return;
  }
  if (name == "resnet") {
    const ResidualWeights residual = read_residual(fields);
    setup.model = resnet_model(residual, read_slopes(fields), fields.number("hidden_ratio", 1));
    return;
  }
  setup.attention = read_attention(fields);
  const ModelAttention& attention = *setup.attention;
  setup.model =
      attention_model(attention.residual, attention.temperature, read_mask(fields), attention.heads);
  if (name == "attention") return;
  const ResidualWeights feedforward = read_feedforward_residual(fields).value_or(attention.residual);
  setup.model =
      stack(setup.model, resnet_model(feedforward, read_slopes(fields), fields.number("hidden_ratio", 1)));
}

NetworkSpec read_intervention(FieldReader& fields, Index width, const std::string& name) {
  const auto networks =
      attention_interventions(width, read_residual(fields), fields.number("temperature", 1));
  for (const NamedNetwork& network : networks)
    if (network.name == name) return network.network;
  std::string known =
      "shaped_transformer, shaped_attention, shaped_resnet, unshaped, unshaped_pre_ln, unshaped_post_ln";
  for (const NamedNetwork& network : networks) known += ", " + network.name;
  fields.fail("network", fmt::format("must be one of {}; got {}", known, name));
}

NetworkSpec read_unshaped(FieldReader& fields, Index width, const std::string& name) {
  return unshaped_transformer(width, read_residual(fields),
                              name == "unshaped"          ? Normalization::none
                              : name == "unshaped_pre_ln" ? Normalization::pre_layer_norm
                                                          : Normalization::post_layer_norm);
}

NetworkSpec read_named_network(FieldReader& fields, Index width) {
  const std::string name = fields.text("network");
  if (name == "shaped_resnet") return shaped_resnet(width, read_residual(fields), read_slopes(fields));
  if (name == "shaped_attention")
    return shaped_attention(width, read_residual(fields), fields.number("temperature", 1));
  if (name == "shaped_transformer")
    return shaped_transformer(width, read_residual(fields), fields.number("temperature", 1),
                              read_slopes(fields));
  if (name == "unshaped" || name == "unshaped_pre_ln" || name == "unshaped_post_ln")
    return read_unshaped(fields, width, name);
  return read_intervention(fields, width, name);
}

NetworkSpec read_spec(FieldReader& fields, Index width) {
  NetworkSpec network = read_named_network(fields, width);
  if (network.attention) {
    network.attention->mask = read_mask(fields);
    network.attention->heads = fields.integer("heads", 1);
    network.key_width = fields.integer("key_width", 0);
  }
  if (!network.feedforward) return network;
  network.feedforward->hidden_width = fields.integer("hidden_width", 0);
  if (network.attention) network.feedforward_residual = read_feedforward_residual(fields);
  return network;
}

std::uint64_t read_seed(FieldReader& fields) {
  const Index seed = fields.integer("seed", 0);
  if (seed < 0) fields.fail("seed", fmt::format("must be at least 0, got {}", seed));
  return static_cast<std::uint64_t>(seed);
}

}  // namespace

nlohmann::json read_sde_config(const std::filesystem::path& file) {
  nlohmann::json config = read_json(file);
  if (!config.is_object())
    throw DataError(fmt::format("{}: expected a JSON object, got {}", file.string(), config.type_name()));
  return config;
}

namespace {

void read_finite_width_drift(FieldReader& fields, SdeSetup& setup) {
  if (fields.has("finite_width_drift"))
    setup.model = with_finite_width_drift(setup.model, fields.integer("finite_width_drift"));
}

/// The geometric scheme is for full attention.
StepScheme read_scheme(FieldReader& fields, const SdeModel& model) {
  const std::string otherwise = model.mask == AttentionMask::full ? "geometric" : "euler_maruyama";
  const std::string scheme =
      fields.choice("scheme", {"geometric", "euler_maruyama", "euler_maruyama_dense"}, otherwise);
  return scheme == "geometric"        ? StepScheme::geometric
         : scheme == "euler_maruyama" ? StepScheme::euler_maruyama
                                      : StepScheme::euler_maruyama_dense;
}

/// A whole setup with `step_control` where the configuration has none.
SdeSetup read_simulation(FieldReader& fields, std::optional<double> step_control) {
  SdeSetup setup{.model = {}, .attention = {}, .v0 = {}, .options = {}};
  read_model(fields, setup);
  setup.v0 = read_start(fields);
  setup.options.times = read_times(fields);
  setup.options.max_step = fields.number("max_step", 0.01);
  setup.options.step_control = step_control;
  if (fields.has("step_control")) setup.options.step_control = fields.number("step_control");
  setup.options.scheme = read_scheme(fields, setup.model);
  setup.options.bounds = read_bounds(fields, {});
  setup.options.paths = fields.integer("paths", 4096);
  setup.options.seed = read_seed(fields);
  read_finite_width_drift(fields, setup);
  return setup;
}

}  // namespace

SdeSetup read_sde_setup(FieldReader& fields) { return read_simulation(fields, std::nullopt); }

SdeSetup read_explosion_setup(FieldReader& fields) {
  constexpr double fine = 0.005;
  return read_simulation(fields, fine);
}

SdeSetup read_law_setup(FieldReader& fields) {
  SdeSetup setup{.model = {}, .attention = {}, .v0 = {}, .options = {}};
  read_model(fields, setup);
  setup.v0 = read_start(fields);
  setup.options.times = read_times(fields);
  read_finite_width_drift(fields, setup);
  return setup;
}

FlowSetup read_flow_setup(FieldReader& fields) {
  FlowSetup setup;
  if (fields.choice("flow", {"drift", "commuting"}, "drift") == "commuting") {
    if (fields.choice("shortcut", {"unit", "variance_preserving"}, "unit") != "unit")
      setup.shortcut = Shortcut::variance_preserving;
    setup.v0 = read_start(fields);
    setup.times = fields.numbers("times");
  } else {
    const SdeSetup drift = read_law_setup(fields);
    setup.model = drift.model;
    setup.v0 = drift.v0;
    setup.times = drift.options.times;
  }
  if (setup.times.empty()) fields.fail("times", "must hold at least one time");
  return setup;
}

GradientSetup read_gradient_setup(FieldReader& fields) {
  GradientSetup setup;
  const Index width = fields.integer("width");
  const nlohmann::json& entries = fields.value("networks");
  if (!entries.is_array() || entries.empty())
    fields.fail("networks", fmt::format("must be a list of networks, got {}", shown_json(entries)));
  for (std::size_t k = 0; k < entries.size(); ++k) {
    FieldReader entry(entries[k], fmt::format("{}.networks[{}]", fields.path(), k));
    const std::string label = entry.text("label", entry.text("network"));
    setup.networks.push_back({label, read_spec(entry, width)});
    entry.finish();
  }
  setup.v0 = read_start(fields);
  setup.options.depth = fields.integer("depth");
  setup.options.networks = fields.integer("samples", 32);
  setup.options.seed = read_seed(fields);
  return setup;
}

SimulationOptions read_limit_options(FieldReader& fields, const NetworkSetup& setup) {
  SimulationOptions options;
  options.max_step = fields.number("max_step", 0.01);
  if (fields.has("step_control")) options.step_control = fields.number("step_control");
  options.paths = fields.integer("paths", setup.options.samples);
  options.scheme = read_scheme(fields, limiting_model(setup.network));
  options.seed = setup.options.seed;
  return options;
}

NetworkSetup read_network_setup(FieldReader& fields) {
  NetworkSetup setup{
      .network = read_spec(fields, fields.integer("width")), .v0 = read_start(fields), .options = {}};
  setup.options.layers =
      fields.has("layers") ? fields.integers("layers") : std::vector<Index>{fields.integer("depth")};
  setup.options.samples = fields.integer("samples", 4096);
  setup.options.seed = read_seed(fields);
  setup.options.bounds = read_bounds(fields, setup.options.bounds);
  // Post-LN has no reduction.
  const bool reduces = setup.network.normalization != Normalization::post_layer_norm;
  if (fields.choice("sampling", {"reduced", "explicit_weights"}, reduces ? "reduced" : "explicit_weights") !=
      "reduced")
    setup.options.sampling = NetworkSampling::explicit_weights;
  return setup;
}

std::vector<double> take_gammas(nlohmann::json& config) {
  if (!config.contains("gammas")) return {};
  FieldReader fields(config, "config");
  std::vector<double> gammas = fields.numbers("gammas");
  if (gammas.empty()) fields.fail("gammas", "must hold at least one residual weight");
  for (const char* other : {"gamma", "gamma_squared", "lambda"})
    if (fields.has(other)) fields.fail("gammas", fmt::format("stands beside {}; give one of them", other));
  for (const double gamma : gammas)
    if (!(gamma >= 0 && gamma <= 1))
      fields.fail("gammas", fmt::format("must lie in [0, 1] because lambda^2 + gamma^2 = 1, got {}", gamma));
  config.erase("gammas");
  config["gamma"] = gammas.front();
  return gammas;
}

std::vector<double> take_temperatures(nlohmann::json& config) {
  if (!config.contains("temperatures")) return {};
  FieldReader fields(config, "config");
  std::vector<double> temperatures = fields.numbers("temperatures");
  if (temperatures.empty()) fields.fail("temperatures", "must hold at least one temperature");
  if (fields.has("temperature")) fields.fail("temperatures", "stands beside temperature; give one of them");
  for (const double temperature : temperatures)
    if (!(temperature > 0 && std::isfinite(temperature)))
      fields.fail("temperatures", fmt::format("must be positive and finite, got {}", temperature));
  config.erase("temperatures");
  return temperatures;
}

}  // namespace widelimit::cli
