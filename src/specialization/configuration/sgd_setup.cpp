#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "specialization/configuration/shared_fields.hpp"
#include "widelimit/layers/matrix_field.hpp"

namespace widelimit::specialization {

SgdSetup read_sgd(ConfigReader& fields, const Prior& prior) {
  SgdSetup setup;
  setup.activation = read_activation(fields);
  setup.prior = prior;
  setup.heads = fields.integer("heads");
  setup.dimension = fields.integer("dimension");
  setup.eta = fields.number("eta");
  setup.form = fields.choice("form", sgd_forms);
  setup.options.tokens = fields.integer("tokens");
  setup.options.batch = fields.integer("batch", setup.dimension);
  setup.options.gamma = fields.number("gamma");
  setup.options.steps = read_steps(fields, "gamma", setup.options.gamma);
  setup.options.record = read_records(fields, setup.options.steps);
  setup.options.seed = read_seed(fields);
  const Index features = prior.features();
  if (fields.has("planted_m")) {
    setup.planted_m = layers::read_matrix_rows(fields, "planted_m", fields.value("planted_m"));
    if (setup.planted_m.rows() != setup.heads || setup.planted_m.cols() != features)
      fields.fail("planted_m", fmt::format("expected {} x {} numbers, got {} x {}", setup.heads, features,
                                           setup.planted_m.rows(), setup.planted_m.cols()));
  }
  require_dimension(fields, setup.dimension,
                    setup.form == SgdForm::gram ? setup.heads + features + setup.options.tokens : features);
  return setup;
}

namespace {

/// The fewest steps of SGD that are whole steps of a flow; nothing where no so many are.
std::optional<Index> common_steps(double gamma, double step, Index most) {
  constexpr double rounding = 1e-12;
  for (Index k = 1; k <= most; ++k) {
    const double tau = static_cast<double>(k) * gamma, of_flow = std::round(tau / step);
    if (of_flow > 0 && std::abs(of_flow * step - tau) <= rounding * tau) return k;
  }
  return std::nullopt;
}

/// About "records" rows at even times that are times of both.
std::vector<Index> records_of_both(ConfigReader& fields, double gamma, double step, Index steps) {
  if (steps == 0) return {0};
  constexpr Index farthest = 1'000'000;
  const auto together = common_steps(gamma, step, std::min(steps, farthest));
  if (!together)
    fields.fail("step",
                fmt::format("expected a step of which {:g}, the learning rate gamma, or a few of it are "
                            "whole numbers, got {:g}: SGD and flow have no time in common up to tau",
                            gamma, step));
  if (steps % *together != 0)
    fields.fail("tau",
                fmt::format("expected a multiple of {:g}, at which SGD of steps {:g} and the flow of steps "
                            "{:g} meet, got {:g}",
                            static_cast<double>(*together) * gamma, gamma, step, fields.number("tau")));
  const Index meetings = steps / *together;
  return record_every(*together * std::max<Index>(1, meetings / fields.integer("records")), steps);
}

}  // namespace

Comparison read_comparison(ConfigReader& fields, const Prior& prior) {
  Comparison both{read_sgd(fields, prior), {}};
  both.flow.step = fields.number("step");
  static_cast<void>(read_steps(fields, "step", both.flow.step));
  both.flow.samples = read_samples(fields, "samples", prior.features());
  both.flow.symmetry = fields.choice("symmetry", sample_symmetries);
  SgdOptions& options = both.sgd.options;
  options.record = records_of_both(fields, options.gamma, both.flow.step, options.steps);
  return both;
}

namespace {

/// Whether the runs are SGD. What is the other's alone may not be given.
bool read_is_sgd(ConfigReader& fields) {
  if (!fields.knows("dynamics")) return false;
  const bool is_sgd = fields.text("dynamics") == "sgd";
  const auto refuse = [&](const char* field, const char* other) {
    if (fields.has(field)) fields.fail(field, fmt::format("has no effect with {}: leave it out", other));
  };
  if (is_sgd)
    for (const char* field : {"step", "samples", "symmetry", "stop_gradient"}) refuse(field, "SGD");
  else
    for (const char* field : {"gamma", "batch"}) refuse(field, "flows");
  return is_sgd;
}

}  // namespace

TimedSetup read_timed_runs(ConfigReader& fields, const Prior& prior) {
  const bool is_sgd = read_is_sgd(fields);
  TimedSetup setup{.runs = {.prior = prior,
                            .heads = fields.integer("heads"),
                            .tokens = fields.integer("tokens"),
                            .delta = fields.number("delta"),
                            .run = {}},
                   .batch = {}};
  TimedFlows& runs = setup.runs;
  if (is_sgd) {
    runs.step = fields.number("gamma");
    runs.steps = read_steps(fields, "gamma", runs.step);
    setup.batch = fields.integer("batch", 0);
    return setup;
  }
  runs.step = fields.number("step");
  runs.stop_gradient = fields.number("stop_gradient");
  runs.symmetry = fields.choice("symmetry", sample_symmetries);
  runs.samples = read_samples(fields, "samples", prior.features());
  runs.steps = read_steps(fields, "step", runs.step);
  return setup;
}

void set_dimension(const ConfigReader& fields, Index dimension, TimedSetup& setup) {
  TimedFlows& runs = setup.runs;
  runs.dimension = dimension;
  require_dimension(fields, dimension, runs.heads + runs.prior.features() + (setup.batch ? runs.tokens : 0));
}

FirstTimes TimedSetup::split_times(double eta, std::uint64_t seed) const {
  return batch ? head_split_time_of_sgd(runs, *batch, eta, seed) : head_split_time(runs, eta, seed);
}

SgdOptions read_image_sgd(ConfigReader& fields, Index pixels) {
  SgdOptions options;
  options.tokens = fields.integer("tokens");
  options.batch = fields.integer("batch", pixels);
  options.gamma = fields.number("gamma");
  options.steps = read_steps(fields, "gamma", options.gamma);
  return options;
}

}  // namespace widelimit::specialization
