#include "widelimit/specialization/flow.hpp"

#include <algorithm>
#include <boost/numeric/odeint/iterator/times_iterator.hpp>
#include <boost/numeric/odeint/stepper/generation.hpp>
#include <boost/numeric/odeint/stepper/runge_kutta4.hpp>
#include <boost/numeric/odeint/stepper/runge_kutta_dopri5.hpp>
#include <utility>

#include "numerics/tasks.hpp"
#include "specialization/checks.hpp"
#include "specialization/flow_guard.hpp"
#include "specialization/moving_parts.hpp"
#include "widelimit/numerics/symmetric_root.hpp"
#include "widelimit/specialization/order_parameters.hpp"

namespace widelimit::specialization {

namespace odeint = boost::numeric::odeint;

namespace {

using State = HeadNumbers;

void check_options(const FlowOptions& options) {
  constexpr const char* where = "gradient_flow";
  require_positive(where, "step", options.step);
  require_at_least(where, "steps", options.steps, 0);
  require_positive(where, "tolerance", options.tolerance);
  require_not_negative(where, "batch_noise", options.batch_noise);
  require_not_negative(where, "stop_gradient", options.stop_gradient);
  if (options.batch_noise > 0 && options.stepper != FlowStepper::euler)
    throw ArgumentError(
        fmt::format("{}: batch_noise needs the euler stepper; set it to 0 for the others", where));
}

bool finite(const HeadParameters& parameters) {
  bool all = true;
  for_each_part([&](const auto& part) { all = all && part.allFinite(); }, parameters);
  return all;
}

/// `now`: loss and gradient at the parameters.
FlowPoint flow_point(double tau, const SampledLoss& now, const HeadParameters& parameters) {
  return {tau, now.loss, largest_entry(now.gradient), parameters, parameters.r * parameters.r.transpose()};
}

bool at_rest(const FlowPoint& point, const FlowOptions& options) {
  return options.stop_gradient > 0 && point.gradient < options.stop_gradient;
}

constexpr const char* not_finite = "the state is no longer finite";

template <typename Scalar>
std::vector<FlowPoint> euler_flow(HeadActivation activation, HeadParameters state,
                                  const SampleSet<Scalar>& samples, const FlowOptions& options,
                                  const std::vector<Index>& record) {
  const LossDetail detail = options.batch_noise > 0 ? LossDetail::gradients_and_noise : LossDetail::gradients;
  std::vector<FlowPoint> points;
  FlowGuard<Scalar> guard(activation, samples, options);
  auto next = record.begin();
  for (Index step = 0; step <= options.steps; ++step) {
    if (!finite(state)) guard.fail(step, not_finite);
    SampledLoss now = sampled_loss(activation, state, samples, detail, {.stop = options.run.stop});
    guard.see(step, now.loss, state);
    keep_what_moves(activation, options.variant, now.gradient);
    FlowPoint point = flow_point(static_cast<double>(step) * options.step, now, state);
    if (options.run.progress) options.run.progress(step, options.steps);
    const bool stop = at_rest(point, options) || step == options.steps;
    // The last point is recorded in any case.
    if (step == *next || stop) points.push_back(std::move(point));
    if (stop) break;
    if (step == *next) ++next;
    add_scaled(state, -options.step, now.gradient);
    // Batch noise adds (gamma D / N_b) C to S in a unit of tau (docs/theory/head-specialization.md, section 3).
    if (options.batch_noise > 0 && finite(state))
      state.r = numerics::symmetric_root(
          state.r * state.r.transpose() + options.step * options.batch_noise * now.noise, overlap_rounding);
  }
  return points;
}

/// Follows the flow to one time after another until `visit` asks to stop by returning false.
template <typename Stepper, typename Derivative, typename Visit>
void visit_times(const Stepper& stepper, const Derivative& derivative, State state,
                 const std::vector<double>& times, double step, const Visit& visit) {
  const auto range = odeint::make_times_range(stepper, derivative, state, times.begin(), times.end(), step);
  auto time = times.begin();
  for (auto place = range.first; place != range.second; ++place)
    if (!visit(*place, *time++)) return;
}

template <typename Scalar>
std::vector<FlowPoint> odeint_flow(HeadActivation activation, const HeadParameters& start,
                                   const SampleSet<Scalar>& samples, const FlowOptions& options,
                                   const std::vector<Index>& record) {
  const auto step_at = [&](double tau) { return static_cast<Index>(tau / options.step); };
  FlowGuard<Scalar> guard(activation, samples, options);
  const auto loss_at = [&](const HeadParameters& parameters, double tau) {
    // A step that is too long shows as an overflow inside the stepper.
    if (!finite(parameters)) guard.fail(step_at(tau), not_finite);
    SampledLoss now =
        sampled_loss(activation, parameters, samples, LossDetail::gradients, {.stop = options.run.stop});
    keep_what_moves(activation, options.variant, now.gradient);
    return now;
  };
  const auto derivative = [&](const State& state, State& velocity, double tau) {
    velocity = packed(loss_at(unpacked(state, start), tau).gradient);
    for (double& entry : velocity) entry = -entry;
  };
  std::vector<FlowPoint> points;
  std::vector<double> times;
  times.reserve(record.size());
  for (const Index step : record) times.push_back(static_cast<double>(step) * options.step);
  const auto visit = [&](const State& state, double tau) {
    const HeadParameters parameters = unpacked(state, start);
    const SampledLoss now = loss_at(parameters, tau);
    guard.see(step_at(tau), now.loss, parameters);
    points.push_back(flow_point(tau, now, parameters));
    if (options.run.progress) options.run.progress(std::ssize(points), std::ssize(times));
    return !at_rest(points.back(), options);
  };
  if (options.stepper == FlowStepper::runge_kutta4)
    visit_times(odeint::runge_kutta4<State>(), derivative, packed(start), times, options.step, visit);
  else
    // Dense output gives the states at recorded times without shortening adaptive steps.
    visit_times(
        odeint::make_dense_output(options.tolerance, options.tolerance, odeint::runge_kutta_dopri5<State>()),
        derivative, packed(start), times, options.step, visit);
  return points;
}

}  // namespace

std::vector<Index> record_every(Index stride, Index steps) {
  require_at_least("record_every", "stride", stride, 1);
  require_at_least("record_every", "steps", steps, 0);
  std::vector<Index> record;
  for (Index step = 0; step < steps; step += stride) record.push_back(step);
  record.push_back(steps);
  return record;
}

std::vector<Index> record_growing(Index count, Index steps) {
  require_at_least("record_growing", "count", count, 1);
  require_at_least("record_growing", "steps", steps, 0);
  std::vector<Index> record = {0};
  for (Index i = 1; i <= count; ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(count);
    // Recorded steps grow by a constant factor; those that rounding makes equal are left out.
    const auto step = static_cast<Index>(std::pow(static_cast<double>(steps), part));
    if (step > record.back() && step < steps) record.push_back(step);
  }
  if (steps > 0) record.push_back(steps);
  return record;
}

template <typename Scalar>
std::vector<FlowPoint> gradient_flow(HeadActivation activation, const HeadParameters& start,
                                     const SampleSet<Scalar>& samples, const FlowOptions& options) {
  check_options(options);
  const std::vector<Index> record = checked_record("gradient_flow", options.record, options.steps);
  return numerics::on_threads(options.run.threads, [&] {
    return options.stepper == FlowStepper::euler ? euler_flow(activation, start, samples, options, record)
                                                 : odeint_flow(activation, start, samples, options, record);
  });
}

template std::vector<FlowPoint> gradient_flow(HeadActivation, const HeadParameters&, const SampleSet<float>&,
                                              const FlowOptions&);
template std::vector<FlowPoint> gradient_flow(HeadActivation, const HeadParameters&, const SampleSet<double>&,
                                              const FlowOptions&);

}  // namespace widelimit::specialization
