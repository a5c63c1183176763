#include "widelimit/specialization/trained_starts.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "numerics/finite_result.hpp"
#include "specialization/checks.hpp"
#include "specialization/moving_parts.hpp"
#include "specialization/run_pieces.hpp"
#include "widelimit/numerics/statistics.hpp"
#include "widelimit/specialization/lowest_curvature.hpp"
#include "widelimit/specialization/order_parameters.hpp"
#include "widelimit/specialization/seeds.hpp"

namespace widelimit::specialization {

namespace {

bool converged(const TrainingSetup& setup, const TrainedStart& result) {
  return result.end().gradient < setup.flow.stop_gradient;
}

/// The end of a flow moved along a direction in which its loss falls, far enough that the gradient there does not
/// end the flow at once; nothing where no such place is near.
std::optional<HeadParameters> moved_from_saddle(const TrainingSetup& setup, const FlowPoint& end,
                                                const HeadParameters& direction,
                                                const SampleSet<float>& samples) {
  constexpr double shortest = 0.05, longest = 2, enough_gradient = 3;
  // Lengths double, because near a saddle the loss falls with the square of the distance.
  for (double length = shortest; length < longest; length *= 2)
    for (const double sign : {1.0, -1.0}) {
      HeadParameters moved = end.parameters;
      add_scaled(moved, sign * length, direction);
      SampledLoss there =
          sampled_loss(setup.activation, moved, samples, LossDetail::gradients, setup.flow.run);
      keep_what_moves(setup.activation, setup.flow.variant, there.gradient);
      if (there.loss < end.loss && largest_entry(there.gradient) > enough_gradient * setup.flow.stop_gradient)
        return moved;
    }
  return std::nullopt;
}

/// The flow from `moved` in the time that is left after `steps` steps.
std::vector<FlowPoint> rest_of_flow(const TrainingSetup& setup, const HeadParameters& moved,
                                    const SampleSet<float>& samples, Index steps) {
  FlowOptions options = setup.flow;
  options.steps -= steps;
  options.record.clear();
  for (const Index step : setup.flow.record)
    if (step > steps) options.record.push_back(step - steps);
  // Step 0 is not recorded, because its time is that of the last point there is.
  if (options.record.empty()) options.record.push_back(options.steps);
  options.run = piece_of(setup.flow.run, steps, setup.flow.steps);
  std::vector<FlowPoint> points = gradient_flow(setup.activation, moved, samples, options);
  for (FlowPoint& point : points) point.tau += static_cast<double>(steps) * options.step;
  return points;
}

/// Looks at the end of a flow, and goes on from a saddle as long as time is left.
void look_at_rest(const TrainingSetup& setup, const SampleSet<float>& samples, TrainedStart& result) {
  // Under batch noise a small gradient is no rest.
  while (converged(setup, result) && setup.flow.batch_noise == 0) {
    const FlowPoint& end = result.end();
    const LowestCurvature lowest =
        lowest_curvature(setup.activation, end.parameters, samples, setup.flow.variant, setup.flow.run);
    result.curvature = lowest.eigenvalue;
    const auto steps = static_cast<Index>(std::llround(end.tau / setup.flow.step));
    if (!setup.leave_saddles || !result.at_saddle() || steps >= setup.flow.steps) return;
    const auto moved = moved_from_saddle(setup, end, lowest.direction, samples);
    if (!moved) return;
    result.left_saddles.push_back({end.tau, end.loss, -lowest.eigenvalue});
    result.curvature.reset();
    std::vector<FlowPoint> further = rest_of_flow(setup, *moved, samples, steps);
    std::move(further.begin(), further.end(), std::back_inserter(result.points));
  }
}

template <typename StartOf>
std::vector<TrainedStart> train(const TrainingSetup& setup, const StartOf& start_of) {
  require_at_least("train_from_starts", "starts", setup.starts, 1);
  require_at_least("train_from_starts", "fresh_samples", setup.fresh_samples, 2);
  // All starts are judged by one set of samples that none of them was trained on.
  const SampleSet<float> judge = fresh_samples(setup);
  std::vector<TrainedStart> results;
  for (Index k = 0; k < setup.starts; ++k) {
    TrainedStart result;
    result.seed = setup.seed + static_cast<std::uint64_t>(k);
    const auto samples = SampleSet<float>::draw(setup.prior, {setup.tokens, setup.heads, setup.samples},
                                                result.seed, {setup.symmetry, {}, setup.flow.run});
    result.points = gradient_flow(setup.activation, start_of(result.seed), samples, setup.flow);
    look_at_rest(setup, samples, result);
    result.converged = converged(setup, result);
    const SampledLoss loss =
        sampled_loss(setup.activation, result.end().parameters, judge, LossDetail::loss_only, setup.flow.run);
    result.loss = numerics::finite_result("train_from_starts", "the loss on fresh samples", loss.loss,
                                          "take a smaller step or smaller heads at the start");
    result.standard_error = loss.standard_error;
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace

SampleSet<float> fresh_samples(const TrainingSetup& setup) {
  return SampleSet<float>::draw(setup.prior, {setup.tokens, setup.heads, setup.fresh_samples},
                                setup.seed + judge_seed, {.run = setup.flow.run});
}

std::vector<TrainedStart> train_from_starts(const TrainingSetup& setup) {
  return train(setup, [&](std::uint64_t seed) {
    return noise_start(setup.activation, setup.heads, setup.prior.features(), setup.eta, seed + start_seed);
  });
}

std::vector<TrainedStart> train_from_starts(const TrainingSetup& setup, const HeadParameters& start) {
  require_heads("start", setup.activation, start, setup.heads, setup.prior.features());
  return train(setup, [&](std::uint64_t) { return start; });
}

std::size_t median_start(const std::vector<TrainedStart>& starts) {
  if (starts.empty()) throw ArgumentError("median_start: expected at least one start, got none");
  std::vector<std::size_t> order(starts.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return starts[a].loss < starts[b].loss; });
  // Of an even number this is the lower one of the two in the middle.
  return order[(order.size() - 1) / 2];
}

Spread spread_of(std::span<const double> values) {
  const std::vector<double> ascending = numerics::sorted(values);
  return {numerics::quantile(ascending, 0.5).value, ascending.front(), ascending.back()};
}

Spread loss_spread(const std::vector<TrainedStart>& starts) {
  std::vector<double> losses;
  losses.reserve(starts.size());
  for (const TrainedStart& start : starts) losses.push_back(start.loss);
  return spread_of(losses);
}

}  // namespace widelimit::specialization
