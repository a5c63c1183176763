#include "widelimit/specialization/flow.hpp"

#include <algorithm>
#include <boost/numeric/odeint/integrate/integrate_times.hpp>
#include <boost/numeric/odeint/stepper/generation.hpp>
#include <boost/numeric/odeint/stepper/runge_kutta4.hpp>
#include <boost/numeric/odeint/stepper/runge_kutta_dopri5.hpp>
#include <utility>

#include "checks.hpp"
#include "widelimit/specialization/order_parameters.hpp"

namespace widelimit::specialization {

using Eigen::Index;
namespace odeint = boost::numeric::odeint;

namespace {

using State = std::vector<double>;

void check_options(const FlowOptions& options) {
  constexpr const char* where = "gradient_flow";
  check_positive(where, "step", options.step);
  check_at_least(where, "steps", options.steps, 0);
  check_positive(where, "tolerance", options.tolerance);
  const auto check_euler_only = [&](const char* field, double value) {
    if (!(value >= 0) || !std::isfinite(value))
      throw ArgumentError(fmt::format("{}: {} must be >= 0 and finite, got {}", where, field, value));
    if (value > 0 && options.stepper != FlowStepper::euler)
      throw ArgumentError(
          fmt::format("{}: {} needs the euler stepper; set it to 0 for the others", where, field));
  };
  check_euler_only("batch_noise", options.batch_noise);
  check_euler_only("stop_gradient", options.stop_gradient);
  for (std::size_t i = 0; i < options.record.size(); ++i) {
    const Index least = i == 0 ? 0 : options.record[i - 1] + 1;
    if (options.record[i] < least || options.record[i] > options.steps)
      throw ArgumentError(fmt::format("{}: record must increase and stay within [0, {}], got {} at place {}",
                                      where, options.steps, options.record[i], i));
  }
}

std::vector<Index> recorded_steps(const FlowOptions& options) {
  std::vector<Index> record = options.record;
  if (record.empty()) record.push_back(0);
  if (record.back() != options.steps) record.push_back(options.steps);
  return record;
}

bool finite(const HeadParameters& parameters) {
  return parameters.m.allFinite() && parameters.r.allFinite() && parameters.b.allFinite() &&
         parameters.v.allFinite();
}

/// Sets the parts that do not move to zero and applies the variant.
void shape_gradient(HeadActivation activation, FlowVariant variant, HeadParameters& gradient) {
  if (variant == FlowVariant::symmetric) gradient.r = ((gradient.r + gradient.r.transpose()) / 2).eval();
  if (!has_bias(activation)) gradient.b.setZero();
  if (!has_scale(activation)) gradient.v.setZero();
}

double largest_entry(const HeadParameters& gradient) {
  return std::max({gradient.m.cwiseAbs().maxCoeff(), gradient.r.cwiseAbs().maxCoeff(),
                   gradient.b.cwiseAbs().maxCoeff(), gradient.v.cwiseAbs().maxCoeff()});
}

FlowPoint flow_point(double tau, double loss, const HeadParameters& parameters) {
  return {tau, loss, parameters, parameters.r * parameters.r.transpose()};
}

[[noreturn]] void report_divergence(Index step, double step_size) {
  throw NumericalError(
      fmt::format("gradient_flow: the state is no longer finite at step {}; take a smaller step than {}",
                  step, step_size));
}

template <typename Scalar>
std::vector<FlowPoint> euler_flow(HeadActivation activation, HeadParameters state,
                                  const SampleSet<Scalar>& samples, const FlowOptions& options) {
  const std::vector<Index> record = recorded_steps(options);
  const LossDetail detail = options.batch_noise > 0 ? LossDetail::gradients_and_noise : LossDetail::gradients;
  std::vector<FlowPoint> points;
  auto next = record.begin();
  for (Index step = 0; step <= options.steps; ++step) {
    if (!finite(state)) report_divergence(step, options.step);
    SampledLoss now = sampled_loss(activation, state, samples, detail);
    shape_gradient(activation, options.variant, now.gradient);
    const bool stop = options.stop_gradient > 0 && largest_entry(now.gradient) < options.stop_gradient;
    if (step == *next || stop) {
      points.push_back(flow_point(static_cast<double>(step) * options.step, now.loss, state));
      if (step == *next) ++next;
    }
    if (stop || step == options.steps) break;
    state.m -= options.step * now.gradient.m;
    state.r -= options.step * now.gradient.r;
    state.b -= options.step * now.gradient.b;
    state.v -= options.step * now.gradient.v;
    if (options.batch_noise > 0 && finite(state))
      state.r =
          symmetric_root(state.r * state.r.transpose() + options.step * options.batch_noise * now.noise);
  }
  return points;
}

/// The parameters as one list of numbers, for odeint.
class Packing {
 public:
  explicit Packing(const HeadParameters& shape) : shape_{shape} {}

  State pack(const HeadParameters& parameters) const {
    State state;
    const auto append = [&](const double* first, Index count) {
      state.insert(state.end(), first, first + count);
    };
    append(parameters.m.data(), parameters.m.size());
    append(parameters.r.data(), parameters.r.size());
    append(parameters.b.data(), parameters.b.size());
    append(parameters.v.data(), parameters.v.size());
    return state;
  }

  HeadParameters unpack(const State& state) const {
    HeadParameters parameters = shape_;
    const double* next = state.data();
    const auto take = [&](auto& part) {
      std::copy_n(next, part.size(), part.data());
      next += part.size();
    };
    take(parameters.m);
    take(parameters.r);
    take(parameters.b);
    take(parameters.v);
    return parameters;
  }

 private:
  HeadParameters shape_;
};

template <typename Scalar>
std::vector<FlowPoint> odeint_flow(HeadActivation activation, const HeadParameters& start,
                                   const SampleSet<Scalar>& samples, const FlowOptions& options) {
  const Packing packing(start);
  const auto step_at = [&](double tau) { return static_cast<Index>(tau / options.step); };
  const auto derivative = [&](const State& state, State& velocity, double tau) {
    const HeadParameters parameters = packing.unpack(state);
    if (!finite(parameters)) report_divergence(step_at(tau), options.step);
    SampledLoss now = sampled_loss(activation, parameters, samples, LossDetail::gradients);
    shape_gradient(activation, options.variant, now.gradient);
    velocity = packing.pack(now.gradient);
    for (double& entry : velocity) entry = -entry;
  };
  std::vector<FlowPoint> points;
  const auto observe = [&](const State& state, double tau) {
    const HeadParameters parameters = packing.unpack(state);
    if (!finite(parameters)) report_divergence(step_at(tau), options.step);
    const double loss = sampled_loss(activation, parameters, samples, LossDetail::loss_only).loss;
    points.push_back(flow_point(tau, loss, parameters));
  };
  std::vector<double> times;
  for (const Index step : recorded_steps(options)) times.push_back(static_cast<double>(step) * options.step);
  State state = packing.pack(start);
  if (options.stepper == FlowStepper::runge_kutta4) {
    odeint::integrate_times(odeint::runge_kutta4<State>(), derivative, state, times.begin(), times.end(),
                            options.step, observe);
  } else {
    odeint::integrate_times(
        odeint::make_dense_output(options.tolerance, options.tolerance, odeint::runge_kutta_dopri5<State>()),
        derivative, state, times.begin(), times.end(), options.step, observe);
  }
  return points;
}

}  // namespace

std::vector<Index> record_every(Index stride, Index steps) {
  check_at_least("record_every", "stride", stride, 1);
  check_at_least("record_every", "steps", steps, 0);
  std::vector<Index> record;
  for (Index step = 0; step < steps; step += stride) record.push_back(step);
  record.push_back(steps);
  return record;
}

template <typename Scalar>
std::vector<FlowPoint> gradient_flow(HeadActivation activation, const HeadParameters& start,
                                     const SampleSet<Scalar>& samples, const FlowOptions& options) {
  check_options(options);
  if (options.stepper == FlowStepper::euler) return euler_flow(activation, start, samples, options);
  return odeint_flow(activation, start, samples, options);
}

template std::vector<FlowPoint> gradient_flow(HeadActivation, const HeadParameters&, const SampleSet<float>&,
                                              const FlowOptions&);
template std::vector<FlowPoint> gradient_flow(HeadActivation, const HeadParameters&, const SampleSet<double>&,
                                              const FlowOptions&);

}  // namespace widelimit::specialization
