#include "widelimit/propagation/simulated_phase.hpp"

#include "widelimit/propagation/exponent_at.hpp"

namespace widelimit::propagation {
namespace {

/// Networks of each point are its own.
std::uint64_t seed_of_point(std::uint64_t seed, Index point) {
  return seed ^ (0x9e3779b97f4a7c15u * (static_cast<std::uint64_t>(point) + 1));
}

ComparedPoint compare_at(const SimulatedPhaseTask& task, const ParameterPoint& point,
                         const SampleOptions& sampling) {
  const Parameters& parameters = point.parameters;
  const double start = equal_tokens_norm(parameters), q0 = task.angle == AngleMeasure::one_block ? 1 : start;
  const double angle = sampling.mask == AttentionMask::causal
                           ? one_block_exponent_limit(parameters, q0, sampling.mask)
                           : one_block_exponent(BlockMap(parameters), q0, 1 - task.c0);
  const numerics::Estimate measured_angle = measured_angle_exponent(parameters, q0, task.c0, sampling);
  const MeasuredGradient gradient = measured_gradient_exponent(
      parameters, TokenDistribution::equal(start), static_cast<Index>(point.options.depth), sampling);
  return {{angle, measured_angle}, {exponent_at(Exponent::gradient, point), gradient.log_of_mean}};
}

}  // namespace

SimulatedPhaseTask read_simulated_phase(ConfigReader& fields) {
  SimulatedPhaseTask task{.transformer = read_transformer(fields)};
  task.c0 = fields.number("c0");
  task.angle = read_exponent_options(fields, task.transformer).angle;
  task.sampling = read_sampling(fields, task.transformer.mask);
  return task;
}

std::vector<ComparedPoint> simulated_phase(const SimulatedPhaseTask& task, const Axis& x, const Axis& y) {
  const ParameterPoint base =
      parameter_point(task.transformer.parameters, task.transformer.exponent_options());
  SampleOptions sampling = task.sampling;
  sampling.progress = {};
  const auto points = static_cast<Index>(x.values.size() * y.values.size());
  std::vector<ComparedPoint> compared;
  for (const double vertical : y.values)
    for (const double horizontal : x.values) {
      ParameterPoint point = base;
      set_coordinate(point, x.coordinate, horizontal);
      set_coordinate(point, y.coordinate, vertical);
      const auto done = static_cast<Index>(compared.size());
      sampling.seed = seed_of_point(task.sampling.seed, done);
      compared.push_back(compare_at(task, point, sampling));
      if (task.sampling.progress)
        task.sampling.progress((done + 1) * sampling.networks, points * sampling.networks);
    }
  return compared;
}

}  // namespace widelimit::propagation
