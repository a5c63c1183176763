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

ResidualWeights read_residual(FieldReader& fields) {
  if (fields.has("gamma_squared") == fields.has("gamma"))
    fields.fail("gamma_squared", "give either gamma_squared or gamma");
  const bool root = fields.has("gamma");
  const double given = fields.number(root ? "gamma" : "gamma_squared");
  if (root && given < 0) fields.fail("gamma", fmt::format("must be at least 0, got {}", given));
  if (!fields.has("lambda")) return ResidualWeights::shaped(root ? given * given : given);
  const double lambda = fields.number("lambda"), gamma = root ? given : std::sqrt(given);
  if (lambda == 1 && gamma == 1) return ResidualWeights::unit();
  return ResidualWeights::from(lambda, gamma);
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

SdeModel read_model(FieldReader& fields) {
  const std::string name = fields.choice("model", {"transformer", "attention", "resnet", "mlp"});
  if (name == "mlp") return mlp_model(read_slopes(fields));
  const ResidualWeights residual = read_residual(fields);
  if (name == "resnet") return resnet_model(residual, read_slopes(fields));
  const double temperature = fields.number("temperature", 1);
  if (name == "attention") return attention_model(residual, temperature, read_mask(fields));
  return transformer_model(residual, temperature, read_slopes(fields));
}

NetworkSpec read_intervention(FieldReader& fields, Index width, const std::string& name) {
  const auto networks =
      attention_interventions(width, read_residual(fields), fields.number("temperature", 1));
  for (const NamedNetwork& network : networks)
    if (network.name == name) return network.network;
  std::string known = "shaped_transformer, shaped_attention, shaped_resnet, unshaped, unshaped_pre_ln";
  for (const NamedNetwork& network : networks) known += ", " + network.name;
  fields.fail("network", fmt::format("must be one of {}; got {}", known, name));
}

NetworkSpec read_spec(FieldReader& fields) {
  const std::string name = fields.text("network");
  const Index width = fields.integer("width");
  NetworkSpec network;
  if (name == "shaped_resnet") {
    network = shaped_resnet(width, read_residual(fields), read_slopes(fields));
    network.feedforward->hidden_width = fields.integer("hidden_width", 0);
  } else if (name == "shaped_attention") {
    network = shaped_attention(width, read_residual(fields), fields.number("temperature", 1));
    network.attention->mask = read_mask(fields);
  } else if (name == "shaped_transformer") {
    network = shaped_transformer(width, read_residual(fields), fields.number("temperature", 1),
                                 read_slopes(fields));
  } else if (name == "unshaped" || name == "unshaped_pre_ln") {
    network = unshaped_transformer(width, read_residual(fields),
                                   name == "unshaped" ? Normalization::none : Normalization::pre_layer_norm);
  } else {
    network = read_intervention(fields, width, name);
  }
  network.key_width = fields.integer("key_width", 0);
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

SdeSetup read_sde_setup(FieldReader& fields) {
  SdeSetup setup{.model = read_model(fields), .v0 = read_start(fields), .options = {}};
  setup.options.times = read_times(fields);
  setup.options.max_step = fields.number("max_step", 0.01);
  if (fields.has("step_control")) setup.options.step_control = fields.number("step_control");
  const std::string scheme =
      fields.choice("scheme", {"geometric", "euler_maruyama", "euler_maruyama_dense"}, "geometric");
  setup.options.scheme = scheme == "geometric"        ? StepScheme::geometric
                         : scheme == "euler_maruyama" ? StepScheme::euler_maruyama
                                                      : StepScheme::euler_maruyama_dense;
  setup.options.bounds = read_bounds(fields, {});
  setup.options.paths = fields.integer("paths", 4096);
  setup.options.seed = read_seed(fields);
  if (fields.has("finite_width_drift"))
    setup.model = with_finite_width_drift(setup.model, fields.integer("finite_width_drift"));
  return setup;
}

NetworkSetup read_network_setup(FieldReader& fields) {
  NetworkSetup setup{.network = read_spec(fields), .v0 = read_start(fields), .options = {}};
  setup.options.layers =
      fields.has("layers") ? fields.integers("layers") : std::vector<Index>{fields.integer("depth")};
  setup.options.samples = fields.integer("samples", 4096);
  setup.options.seed = read_seed(fields);
  setup.options.bounds = read_bounds(fields, setup.options.bounds);
  if (fields.choice("sampling", {"reduced", "explicit_weights"}, "reduced") != "reduced")
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

}  // namespace widelimit::cli
