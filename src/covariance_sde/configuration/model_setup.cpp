#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "covariance_sde/configuration/shared_fields.hpp"
#include "numerics/count.hpp"
#include "widelimit/covariance_sde/checks.hpp"
#include "widelimit/json/read_json.hpp"

namespace widelimit::covariance_sde {

namespace {

/// "points" equal parts of the way to the last time.
std::vector<double> equal_times(ConfigReader& fields, double horizon) {
  const Index points = fields.integer("points");
  std::vector<double> times;
  for (Index k = 1; k < points; ++k)
    times.push_back(horizon * static_cast<double>(k) / static_cast<double>(points));
  times.push_back(horizon);
  return times;
}

/// Flows of the drift, which does not depend on it, have no such field.
double read_hidden_ratio(ConfigReader& fields) {
  return fields.knows("hidden_ratio") ? fields.number("hidden_ratio") : 1;
}

/// Attention alone has no ReLU.
SdeModel with_read_drift(ConfigReader& fields, const SdeModel& model) {
  const bool asked = fields.has("finite_width_drift") && fields.text("model") != "attention";
  return asked ? with_finite_width_drift(model, fields.integer("finite_width_drift")) : model;
}

SdeModel read_resnet(ConfigReader& fields) {
  const ResidualWeights residual = read_residual(fields);
  require_shaped(fields, residual);
  return resnet_model(residual, read_slopes(fields), read_hidden_ratio(fields));
}

/// With a feedforward block if it is a transformer.
SdeModel read_attention(ConfigReader& fields, bool is_transformer) {
  const ResidualWeights residual = read_residual(fields);
  const double temperature = fields.number("temperature");
  const Index heads = fields.knows("heads") ? fields.integer("heads") : 1;
  require_shaped(fields, residual);
  const SdeModel attention = attention_model(residual, temperature, read_mask(fields), heads);
  if (!is_transformer) return attention;
  const ResidualWeights feedforward = read_feedforward_residual(fields).value_or(residual);
  require_shaped(fields, feedforward, "_feedforward");
  return stack(attention, resnet_model(feedforward, read_slopes(fields), read_hidden_ratio(fields)));
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
  static_cast<void>(numerics::checked_count(std::ceil(horizon / options.max_step), numerics::most_steps,
                                            place + ": steps up to the last time"));
  if (options.scheme == StepScheme::geometric)
    naming_errors(place, [&] { require_step_size("geometric", model, options.max_step); });
}

}  // namespace

SdeModel read_model(ConfigReader& fields) {
  const std::string name = fields.text("model");
  return with_read_drift(fields, name == "mlp"      ? mlp_model(read_slopes(fields))
                                 : name == "resnet" ? read_resnet(fields)
                                                    : read_attention(fields, name == "transformer"));
}

std::vector<double> read_times(ConfigReader& fields) {
  fields.require_one("times", {"horizon", "depth", "width"}, "horizon, or depth and width");
  if (fields.has("times")) return fields.numbers("times");
  if (fields.has("horizon")) return equal_times(fields, fields.number("horizon"));
  const Index depth = fields.integer("depth"), width = fields.integer("width");
  // T = depth / width, in this order: a layer is time 1 / n.
  return equal_times(fields, static_cast<double>(depth) / static_cast<double>(width));
}

SimulationOptions read_simulation(ConfigReader& fields, const SdeModel& model, bool attends,
                                  const Matrix<double>& v0) {
  SimulationOptions options;
  options.times = read_times(fields);
  options.max_step = fields.number("max_step");
  read_step_control(fields, attends, options);
  options.scheme = read_scheme(fields, model);
  options.bounds = read_bounds(fields, v0);
  options.paths = fields.integer("paths");
  require_room(fields, "paths", options.paths, v0, options.times.size());
  options.seed = read_seed(fields);
  check_steps(fields, model, options, options.times.back());
  return options;
}

SdeSetup read_sde_setup(ConfigReader& fields) {
  const SdeModel model = read_model(fields);
  const std::string name = fields.text("model");
  Matrix<double> v0 = read_start(fields);
  SimulationOptions options =
      read_simulation(fields, model, name == "attention" || name == "transformer", v0);
  return {model, std::move(v0), std::move(options)};
}

SdeSetup read_law_setup(ConfigReader& fields) {
  SdeSetup setup{.model = read_model(fields), .v0 = read_start(fields), .options = {}};
  setup.options.times = read_times(fields);
  return setup;
}

CoefficientSetup read_coefficient_setup(ConfigReader& fields) {
  const SdeModel model = read_model(fields);
  return {model, read_start(fields)};
}

FlowSetup read_flow_setup(ConfigReader& fields) {
  FlowSetup setup;
  if (fields.text("flow") == "commuting") {
    setup.shortcut = fields.choice("shortcut", shortcuts);
    setup.v0 = read_start(fields);
    // A time is a layer over the depth, and no ratio of depth and width.
    fields.require_one("times", {"horizon"}, "horizon");
    for (const char* field : {"depth", "width"})
      if (fields.has(field))
        fields.fail(field, "has no effect with the commuting flow, of any depth: leave it out");
    setup.times = read_times(fields);
  } else {
    const SdeSetup drift = read_law_setup(fields);
    setup.model = drift.model;
    setup.v0 = drift.v0;
    setup.times = drift.options.times;
  }
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

}  // namespace widelimit::covariance_sde
