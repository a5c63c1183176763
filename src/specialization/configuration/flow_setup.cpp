#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "specialization/configuration/shared_fields.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/layers/matrix_field.hpp"

namespace widelimit::specialization {

namespace {

Matrix<double> read_matrix(FieldReader& fields, const char* field) {
  return layers::read_matrix_rows(fields, field, fields.value(field));
}

/// A single number counts as a list of one.
Vector<double> read_vector(FieldReader& fields, const char* field) {
  if (fields.value(field).is_number()) return Vector<double>::Constant(1, fields.number(field));
  const std::vector<double> numbers = fields.numbers(field);
  return Eigen::Map<const Vector<double>>(numbers.data(), static_cast<Index>(numbers.size()));
}

void require_entries(const FieldReader& fields, const char* field, const Matrix<double>& matrix, Index rows,
                     Index columns) {
  if (matrix.rows() != rows || matrix.cols() != columns)
    fields.fail(field, fmt::format("expected {} x {} numbers, got {} x {}", rows, columns, matrix.rows(),
                                   matrix.cols()));
}

Matrix<double> root_of(const FieldReader& start, const Matrix<double>& S) {
  try {
    return overlap_root(S);
  } catch (const Error& error) {
    start.fail("S", error.what());
  }
}

/// Not all activations have biases and scales.
void check_offsets(const FieldReader& start, HeadActivation activation) {
  const auto refuse = [&](const char* field, bool known) {
    if (start.has(field) && !known)
      start.fail(field, fmt::format("has no effect with the activation {}: leave it out",
                                    head_activation_name(activation)));
  };
  refuse("b", has_bias(activation));
  refuse("v", has_scale(activation));
}

FlowOptions read_flow(ConfigReader& fields) {
  constexpr double last = 20'000;
  FlowOptions options;
  options.step = fields.number("step");
  options.steps = read_steps(fields, "step", options.step, last);
  // Up to a time of the user's own, records are even; a flow without one passes plateaus of all scales.
  options.record = fields.has("tau") ? read_records(fields, options.steps)
                                     : record_growing(fields.integer("records"), options.steps);
  options.variant = fields.choice("variant", flow_variants);
  options.stepper = fields.choice("stepper", flow_steppers);
  options.batch_noise = fields.number("batch_noise");
  if (options.batch_noise > 0 && options.stepper != FlowStepper::euler)
    fields.fail("batch_noise", "expected 0 with a stepper other than euler");
  options.stop_gradient = fields.number("stop_gradient");
  return options;
}

}  // namespace

TrainingSetup read_fresh_samples(ConfigReader& fields, const Prior& prior) {
  TrainingSetup setup;
  setup.prior = prior;
  setup.tokens = fields.integer("tokens");
  setup.heads = fields.integer("heads");
  setup.fresh_samples = read_samples(fields, "fresh_samples", prior.features());
  setup.seed = read_seed(fields);
  return setup;
}

TrainingSetup read_training(ConfigReader& fields, const Prior& prior) {
  const HeadActivation activation = read_activation(fields);
  const FlowOptions flow = read_flow(fields);
  const Index samples = read_samples(fields, "samples", prior.features());
  TrainingSetup setup = read_fresh_samples(fields, prior);
  setup.activation = activation;
  setup.flow = flow;
  setup.samples = samples;
  setup.symmetry = fields.choice("symmetry", sample_symmetries);
  setup.eta = fields.number("eta");
  setup.leave_saddles = fields.boolean("leave_saddles");
  setup.starts = fields.integer("starts");
  return setup;
}

std::optional<HeadParameters> read_start(ConfigReader& fields, const TrainingSetup& setup) {
  if (!fields.has("start")) return std::nullopt;
  if (fields.has("eta")) fields.fail("eta", "has no meaning together with start: leave it out");
  FieldReader start(fields.value("start"), fields.path() + ".start");
  if (start.has("S") == start.has("r")) fields.fail("start", "give either S or r");
  const char* root = start.has("S") ? "S" : "r";
  const Matrix<double> m = read_matrix(start, "m"), given = read_matrix(start, root);
  require_entries(start, "m", m, setup.heads, setup.prior.features());
  require_entries(start, root, given, setup.heads, setup.heads);
  HeadParameters parameters =
      with_initial_offsets(setup.activation, m, start.has("r") ? given : root_of(start, given));
  check_offsets(start, setup.activation);
  if (start.has("b")) parameters.b = read_vector(start, "b");
  if (start.has("v")) parameters.v = read_vector(start, "v");
  naming_errors(fields.path() + ".start",
                [&] { require_offsets("start", setup.activation, setup.heads, parameters.b, parameters.v); });
  start.finish();
  return parameters;
}

FlowPairSetup read_flow_pair(ConfigReader& fields, const Prior& prior) {
  FlowPairSetup setup{.activation = read_activation(fields),
                      .prior = prior,
                      .shape = {fields.integer("tokens"), fields.integer("heads"), 0},
                      .samples = {fields.choice("symmetry", sample_symmetries), {}, {}},
                      .flow = {},
                      .eta = fields.number("eta")};
  setup.shape.count = read_samples(fields, "samples", prior.features());
  setup.flow.step = fields.number("step");
  setup.flow.steps = read_steps(fields, "step", setup.flow.step);
  setup.flow.record = read_records(fields, setup.flow.steps);
  setup.flow.stop_gradient = fields.number("stop_gradient");
  return setup;
}

}  // namespace widelimit::specialization
