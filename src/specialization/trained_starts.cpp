#include "widelimit/specialization/trained_starts.hpp"

#include <algorithm>

#include "checks.hpp"
#include "widelimit/numerics/statistics.hpp"
#include "widelimit/specialization/order_parameters.hpp"

namespace widelimit::specialization {

namespace {

// Far from the small seeds a user counts up: fresh samples and starts must not repeat the training set.
constexpr std::uint64_t kNoiseSeed = 1'000'000'007;
constexpr std::uint64_t kJudgeSeed = 2'000'000'011;

template <typename StartOf>
std::vector<TrainedStart> train(const TrainingSetup& setup, const StartOf& start_of) {
  require_at_least("train_from_starts", "starts", setup.starts, 1);
  const SampleSet<float> judge = fresh_samples(setup);
  std::vector<TrainedStart> results;
  for (Index k = 0; k < setup.starts; ++k) {
    TrainedStart result;
    result.seed = setup.seed + static_cast<std::uint64_t>(k);
    const auto samples = SampleSet<float>::draw(setup.prior, {setup.tokens, setup.heads, setup.samples},
                                                result.seed, {setup.symmetry, {}, setup.flow.run});
    result.points = gradient_flow(setup.activation, start_of(result.seed), samples, setup.flow);
    result.converged = result.end().gradient < setup.flow.stop_gradient;
    const SampledLoss loss =
        sampled_loss(setup.activation, result.end().parameters, judge, LossDetail::loss_only, setup.flow.run);
    result.loss = loss.loss;
    result.standard_error = loss.standard_error;
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace

SampleSet<float> fresh_samples(const TrainingSetup& setup) {
  return SampleSet<float>::draw(setup.prior, {setup.tokens, setup.heads, setup.fresh_samples},
                                setup.seed + kJudgeSeed, {.run = setup.flow.run});
}

std::vector<TrainedStart> train_from_starts(const TrainingSetup& setup) {
  return train(setup, [&](std::uint64_t seed) {
    return noise_start(setup.activation, setup.heads, setup.prior.features(), setup.eta, seed + kNoiseSeed);
  });
}

std::vector<TrainedStart> train_from_starts(const TrainingSetup& setup, const HeadParameters& start) {
  return train(setup, [&](std::uint64_t) { return start; });
}

std::size_t median_start(const std::vector<TrainedStart>& starts) {
  if (starts.empty()) throw ArgumentError("median_start: expected at least one start, got none");
  std::vector<std::size_t> order(starts.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return starts[a].loss < starts[b].loss; });
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
