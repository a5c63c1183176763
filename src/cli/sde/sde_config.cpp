#include "cli/sde/sde_config.hpp"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "cli/options/counts.hpp"
#include "cli/sde/sde_fields.hpp"
#include "widelimit/covariance_sde/checks.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/json/shown_text.hpp"
#include "widelimit/layers/matrix_field.hpp"
#include "widelimit/numerics/memory.hpp"

namespace widelimit::cli {

using namespace covariance_sde;

namespace {

/// `suffix`: after the names of the fields.
ResidualWeights read_weights(ConfigReader& fields, const std::string& suffix) {
  const std::string squared = "gamma_squared" + suffix, root = "gamma" + suffix, shortcut = "lambda" + suffix;
  if (fields.knows("gammas")) fields.require_one(squared, {root}, root + " or gammas");
  fields.require_either(squared, root);
  const bool by_root = fields.has(root);
  const double given = fields.number(by_root ? root : squared);
  if (!fields.has(shortcut)) return ResidualWeights::shaped(by_root ? given * given : given);
  const double lambda = fields.number(shortcut), gamma = by_root ? given : std::sqrt(given);
  if (lambda == 1 && gamma == 1) return ResidualWeights::unit();
  return naming_errors(fmt::format("{}.{}", fields.path(), shortcut),
                       [&] { return ResidualWeights::from(lambda, gamma); });
}

/// Of models and networks that only shaped weights have a limit for.
void require_shaped(const ConfigReader& fields, ResidualWeights residual, const std::string& suffix = "") {
  if (!residual.preserves_variance())
    fields.fail(
        "lambda" + suffix,
        "expected lambda^2 + gamma^2 = 1, got lambda = gamma = 1, which only the unshaped networks take");
}

ResidualWeights read_residual(ConfigReader& fields) { return read_weights(fields, ""); }

/// Of the feedforward block; nothing where it has those of the attention block.
std::optional<ResidualWeights> read_feedforward_residual(ConfigReader& fields) {
  constexpr const char* suffix = "_feedforward";
  for (const char* name : {"gamma_squared", "gamma", "lambda"})
    if (fields.has(std::string(name) + suffix)) return read_weights(fields, suffix);
  return std::nullopt;
}

ShapedSlopes read_slopes(ConfigReader& fields) { return {fields.number("c_plus"), fields.number("c_minus")}; }

AttentionMask read_mask(ConfigReader& fields) { return fields.choice("mask", masks); }

/// "V0", or "tokens" of equal "variance" and correlation "rho0".
Matrix<double> read_start(ConfigReader& fields) {
  if (!fields.has("V0")) {
    const Index tokens = fields.integer("tokens");
    const double m = static_cast<double>(tokens);
    numerics::require_memory("config.tokens", fmt::format("a covariance of {} tokens", tokens),
                             m * m * sizeof(double), "take fewer tokens");
    const double variance = fields.number("variance");
    Matrix<double> v = Matrix<double>::Constant(tokens, tokens, variance * fields.number("rho0"));
    v.diagonal().setConstant(variance);
    require_covariance(fields.path() + ".rho0", v);
    return v;
  }
  Matrix<double> v = layers::read_square_matrix<double>(fields, "V0");
  require_covariance(fields.path() + ".V0", v);
  require_variances(fields.path() + ".V0", v);
  return v;
}

/// Paths or networks whose covariances of all times have to fit into memory.
void require_room(const ConfigReader& fields, const char* name, Index paths, const Matrix<double>& v0,
                  std::size_t times) {
  numerics::require_memory(fmt::format("{}.{}", fields.path(), name), fmt::format("{} covariances", paths),
                           static_cast<double>(paths) * static_cast<double>(v0.size()) *
                               static_cast<double>(times) * sizeof(double),
                           "take fewer");
}

/// "points" equal parts of the way to the last time.
std::vector<double> equal_times(ConfigReader& fields, double horizon) {
  const Index points = fields.integer("points");
  std::vector<double> times;
  for (Index k = 1; k < points; ++k)
    times.push_back(horizon * static_cast<double>(k) / static_cast<double>(points));
  times.push_back(horizon);
  return times;
}

std::vector<double> read_times(ConfigReader& fields) {
  fields.require_one("times", {"horizon", "depth", "width"}, "horizon, or depth and width");
  if (fields.has("times")) return fields.numbers("times");
  if (fields.has("horizon")) return equal_times(fields, fields.number("horizon"));
  const Index depth = fields.integer("depth"), width = fields.integer("width");
  // T = depth / width, in this order: a layer is time 1 / n.
  return equal_times(fields, static_cast<double>(depth) / static_cast<double>(width));
}

/// "layers", or "points" of them up to "depth".
std::vector<Index> read_layers(ConfigReader& fields) {
  fields.require_one("layers", {"depth"}, "depth");
  if (fields.has("layers")) return fields.integers("layers");
  const Index depth = fields.integer("depth"), points = fields.integer("points");
  if (points > depth)
    fields.fail("points", fmt::format("expected at most the depth, {}, got {}", depth, points));
  std::vector<Index> layers;
  for (Index k = 1; k <= points; ++k)
    layers.push_back(static_cast<Index>(
        std::llround(static_cast<double>(depth) * static_cast<double>(k) / static_cast<double>(points))));
  return layers;
}

ModelAttention read_attention(ConfigReader& fields) {
  return {read_residual(fields), fields.number("temperature"),
          fields.knows("heads") ? fields.integer("heads") : 1};
}

/// Flows of the drift, which does not depend on it, have no such field.
double read_hidden_ratio(ConfigReader& fields) {
  return fields.knows("hidden_ratio") ? fields.number("hidden_ratio") : 1;
}

/// Model and attention of the setup.
void read_model(ConfigReader& fields, SdeSetup& setup) {
  const std::string name = fields.text("model");
  if (name == "mlp") {
    setup.model = mlp_model(read_slopes(fields));
    return;
  }
  if (name == "resnet") {
    const ResidualWeights residual = read_residual(fields);
    require_shaped(fields, residual);
    setup.model = resnet_model(residual, read_slopes(fields), read_hidden_ratio(fields));
    return;
  }
  setup.attention = read_attention(fields);
  const ModelAttention& attention = *setup.attention;
  require_shaped(fields, attention.residual);
  setup.model =
      attention_model(attention.residual, attention.temperature, read_mask(fields), attention.heads);
  if (name == "attention") return;
  const ResidualWeights feedforward = read_feedforward_residual(fields).value_or(attention.residual);
  require_shaped(fields, feedforward, "_feedforward");
  setup.model = stack(setup.model, resnet_model(feedforward, read_slopes(fields), read_hidden_ratio(fields)));
}

NetworkSpec read_intervention(ConfigReader& fields, Index width, const std::string& name) {
  const auto networks = attention_interventions(width, read_residual(fields), fields.number("temperature"));
  for (const NamedNetwork& network : networks)
    if (network.name == name) return network.network;
  std::string known =
      "shaped_transformer, shaped_attention, shaped_resnet, mlp, unshaped, unshaped_pre_ln, unshaped_post_ln";
  for (const NamedNetwork& network : networks) known += ", " + network.name;
  fields.fail("network", fmt::format("must be one of {}; got {}", known, name));
}

NetworkSpec read_unshaped(ConfigReader& fields, Index width, const std::string& name) {
  return unshaped_transformer(width, read_residual(fields),
                              name == "unshaped"          ? Normalization::none
                              : name == "unshaped_pre_ln" ? Normalization::pre_layer_norm
                                                          : Normalization::post_layer_norm);
}

NetworkSpec read_named_network(ConfigReader& fields, Index width) {
  const std::string name = fields.text("network");
  if (name == "mlp") return shaped_mlp(width, read_slopes(fields));
  if (name == "shaped_resnet") return shaped_resnet(width, read_residual(fields), read_slopes(fields));
  if (name == "shaped_attention")
    return shaped_attention(width, read_residual(fields), fields.number("temperature"));
  if (name == "shaped_transformer")
    return shaped_transformer(width, read_residual(fields), fields.number("temperature"),
                              read_slopes(fields));
  if (name == "unshaped" || name == "unshaped_pre_ln" || name == "unshaped_post_ln")
    return read_unshaped(fields, width, name);
  return read_intervention(fields, width, name);
}

Index heads_of(const NetworkSpec& network) { return network.attention ? network.attention->heads : 1; }

/// g_1 and g_2 of eq. 33, which the interventions of figure 3 have in their names.
void read_weights_of_terms(ConfigReader& fields, AttentionBlock& block) {
  const std::string name = fields.text("network");
  if (!name.starts_with("unshaped") && name != "shaped_attention" && name != "shaped_transformer") return;
  block.identity_weight = fields.number("g1", block.identity_weight);
  block.centring_weight = fields.number("g2", block.centring_weight);
}

/// What two fields must have in common.
void check_spec(ConfigReader& fields, const NetworkSpec& network) {
  if (network.width % heads_of(network) != 0)
    fields.fail("heads",
                fmt::format("expected a divisor of the width, {}, got {}", network.width, heads_of(network)));
  if (!fields.text("network").starts_with("unshaped")) {
    require_shaped(fields, network.residual);
    if (network.feedforward_residual) require_shaped(fields, *network.feedforward_residual, "_feedforward");
    return;
  }
  const bool standard = network.attention->identity_weight == 0 && network.attention->centring_weight == 0;
  if (!network.residual.preserves_variance() && !standard)
    fields.fail("lambda",
                "expected lambda^2 + gamma^2 = 1 with g1 or g2 other than 0, got lambda = gamma = 1");
}

NetworkSpec read_spec(ConfigReader& fields, Index width) {
  NetworkSpec network = read_named_network(fields, width);
  if (network.attention) {
    read_weights_of_terms(fields, *network.attention);
    network.attention->mask = read_mask(fields);
    network.attention->heads = fields.integer("heads");
    network.key_width = fields.integer("key_width");
  }
  if (network.feedforward) {
    network.feedforward->hidden_width = fields.integer("hidden_width");
    if (network.attention) network.feedforward_residual = read_feedforward_residual(fields);
  }
  check_spec(fields, network);
  return network;
}

std::uint64_t read_seed(ConfigReader& fields) { return static_cast<std::uint64_t>(fields.integer("seed")); }

/// The field to change where the start lies outside the bounds: a bound that was given, else what gives the start.
const char* field_of_start(const ConfigReader& fields, const Matrix<double>& v0, const StopBounds& bounds) {
  const std::optional<PathEnd> end = end_of_path(v0, bounds);
  if (end == PathEnd::above && fields.has("upper")) return "upper";
  if (end == PathEnd::below && fields.has("lower")) return "lower";
  if (fields.has("V0")) return "V0";
  return fields.has("rho0") && !fields.has("variance") ? "rho0" : "variance";
}

/// "lower" and "upper". Where a start lies outside, the error names the bound that was given, or else a field of the
/// start.
StopBounds read_bounds(ConfigReader& fields, const Matrix<double>& v0) {
  const StopBounds bounds{fields.number("lower"), fields.number("upper")};
  if (!(bounds.upper > bounds.lower))
    fields.fail("upper", fmt::format("expected a number > lower, {}, got {}", bounds.lower, bounds.upper));
  naming_errors(fmt::format("{}.{}", fields.path(), field_of_start(fields, v0, bounds)),
                [&] { require_start("start", v0, bounds); });
  return bounds;
}

}  // namespace

nlohmann::json read_sde_config(const std::filesystem::path& file) {
  nlohmann::json config = read_json(file);
  if (!config.is_object())
    throw DataError(fmt::format("{}: expected a JSON object, got {}", file.string(), config.type_name()));
  return config;
}

namespace {

/// Attention alone has no ReLU.
void read_finite_width_drift(ConfigReader& fields, SdeSetup& setup) {
  if (fields.has("finite_width_drift") && fields.text("model") != "attention")
    setup.model = with_finite_width_drift(setup.model, fields.integer("finite_width_drift"));
}

/// Without attention nothing reads the field, so that one that is given is an error.
void read_step_control(ConfigReader& fields, bool attends, SimulationOptions& options) {
  if (const nlohmann::json fixed = fields.default_of("step_control"); !fixed.is_null())
    options.step_control = fixed.get<double>();
  if (attends && fields.has("step_control")) options.step_control = fields.number("step_control");
}

/// The geometric scheme is for full attention.
StepScheme read_scheme(ConfigReader& fields, const SdeModel& model) {
  const bool full = model.mask == AttentionMask::full;
  const StepScheme scheme =
      fields.choice("scheme", step_schemes, full ? StepScheme::geometric : StepScheme::euler_maruyama);
  if (scheme == StepScheme::geometric && model.attention_drift > 0 && model.mask != AttentionMask::full)
    fields.fail("scheme",
                "expected euler_maruyama or euler_maruyama_dense with a causal mask, got \"geometric\"");
  return scheme;
}

/// Steps that are no more than anyone waits for, and no larger than the scheme allows.
void check_steps(const ConfigReader& fields, const SdeModel& model, const SimulationOptions& options,
                 double horizon) {
  const std::string place = fields.path() + ".max_step";
  static_cast<void>(checked_count(std::ceil(horizon / options.max_step), most_steps,
                                  place + ": steps up to the last time"));
  if (options.scheme == StepScheme::geometric)
    naming_errors(place, [&] { require_step_size("geometric", model, options.max_step); });
}

}  // namespace

SdeSetup read_sde_setup(ConfigReader& fields) {
  SdeSetup setup{.model = {}, .attention = {}, .v0 = {}, .options = {}};
  read_model(fields, setup);
  setup.v0 = read_start(fields);
  setup.options.times = read_times(fields);
  setup.options.max_step = fields.number("max_step");
  read_step_control(fields, setup.attention.has_value(), setup.options);
  setup.options.scheme = read_scheme(fields, setup.model);
  setup.options.bounds = read_bounds(fields, setup.v0);
  setup.options.paths = fields.integer("paths");
  require_room(fields, "paths", setup.options.paths, setup.v0, setup.options.times.size());
  setup.options.seed = read_seed(fields);
  read_finite_width_drift(fields, setup);
  check_steps(fields, setup.model, setup.options, setup.options.times.back());
  return setup;
}

SdeSetup read_law_setup(ConfigReader& fields) {
  SdeSetup setup{.model = {}, .attention = {}, .v0 = {}, .options = {}};
  read_model(fields, setup);
  setup.v0 = read_start(fields);
  setup.options.times = read_times(fields);
  read_finite_width_drift(fields, setup);
  return setup;
}

CoefficientSetup read_coefficient_setup(ConfigReader& fields) {
  SdeSetup setup{.model = {}, .attention = {}, .v0 = {}, .options = {}};
  read_model(fields, setup);
  Matrix<double> v0 = read_start(fields);
  read_finite_width_drift(fields, setup);
  return {setup.model, std::move(v0)};
}

FlowSetup read_flow_setup(ConfigReader& fields) {
  FlowSetup setup;
  if (fields.text("flow") == "commuting") {
    setup.shortcut = fields.choice("shortcut", shortcuts);
    setup.v0 = read_start(fields);
    setup.times = fields.numbers("times");
  } else {
    const SdeSetup drift = read_law_setup(fields);
    setup.model = drift.model;
    setup.v0 = drift.v0;
    setup.times = drift.options.times;
  }
  return setup;
}

GradientSetup read_gradient_setup(ConfigReader& fields) {
  GradientSetup setup;
  const Index width = fields.integer("width");
  const nlohmann::json& entries = fields.value("networks");
  if (!entries.is_array() || entries.empty())
    fields.fail("networks", fmt::format("must be a list of networks, got {}", shown_json(entries)));
  for (std::size_t k = 0; k < entries.size(); ++k) {
    const std::string path = fmt::format("{}.networks[{}]", fields.path(), k);
    ConfigReader entry(entries[k], sde_gradient_network_fields(), path);
    const std::string label = entry.text("label", entry.text("network"));
    for (const GradientSetup::Network& other : setup.networks)
      if (other.label == label)
        entry.fail("label",
                   fmt::format("appears twice in networks, \"{}\"; give each a label of its own", label));
    setup.networks.push_back({label, read_spec(entry, width)});
    entry.finish(unused_field);
  }
  setup.v0 = read_start(fields);
  for (std::size_t k = 0; k < setup.networks.size(); ++k)
    naming_errors(fields.path() + ".width", [&] {
      require_network(fmt::format("networks[{}]", k), setup.networks[k].network, setup.v0.rows());
    });
  setup.options.depth = fields.integer("depth");
  setup.options.networks = fields.integer("samples");
  setup.options.seed = read_seed(fields);
  return setup;
}

SimulationOptions read_limit_options(ConfigReader& fields, const NetworkSetup& setup) {
  SimulationOptions options;
  options.max_step = fields.number("max_step");
  read_step_control(fields, setup.network.attention.has_value(), options);
  options.paths = fields.integer("paths", setup.options.samples);
  require_room(fields, "paths", options.paths, setup.v0, setup.options.layers.size());
  const SdeModel limit =
      naming_errors(fields.path() + ".network", [&] { return limiting_model(setup.network); });
  options.scheme = read_scheme(fields, limit);
  check_steps(fields, limit, options,
              static_cast<double>(setup.options.layers.back()) / static_cast<double>(setup.network.width));
  options.seed = setup.options.seed;
  return options;
}

namespace {

/// Widths against tokens.
void check_sizes(const ConfigReader& fields, const NetworkSetup& setup) {
  const NetworkSpec& network = setup.network;
  const Index tokens = setup.v0.rows(),
              least = network.normalization == Normalization::none ? tokens : tokens + 1;
  if (network.width < least)
    fields.fail("width",
                fmt::format("expected at least {} for {} tokens, got {}", least, tokens, network.width));
  if (setup.options.sampling == NetworkSampling::explicit_weights) return;
  if (network.normalization == Normalization::post_layer_norm ||
      (network.normalization != Normalization::none && heads_of(network) > 1))
    fields.fail(
        "sampling",
        "expected explicit_weights for Post-LN and for Pre-LN with several heads, which have no reduction");
  if (heads_of(network) > 1 && network.width / heads_of(network) < tokens)
    fields.fail("heads", fmt::format("expected at most width / tokens = {} with reduced sampling, got {}",
                                     network.width / tokens, heads_of(network)));
}

}  // namespace

NetworkSetup read_network_setup(ConfigReader& fields) {
  NetworkSetup setup{
      .network = read_spec(fields, fields.integer("width")), .v0 = read_start(fields), .options = {}};
  setup.options.layers = read_layers(fields);
  setup.options.samples = fields.integer("samples");
  require_room(fields, "samples", setup.options.samples, setup.v0, setup.options.layers.size());
  setup.options.seed = read_seed(fields);
  setup.options.bounds = read_bounds(fields, setup.v0);
  const SamplingChoice usual = usual_sampling(setup.network, setup.v0.rows());
  setup.options.sampling = fields.choice("sampling", network_samplings, usual.sampling);
  if (!fields.has("sampling")) setup.why_explicit = usual.reason;
  check_sizes(fields, setup);
  return setup;
}

}  // namespace widelimit::cli
