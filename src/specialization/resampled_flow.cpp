#include "widelimit/specialization/resampled_flow.hpp"

#include <cmath>
#include <utility>

#include "widelimit/specialization/seeds.hpp"

namespace widelimit::specialization {

namespace {

// Far from the small seeds a user counts up: fresh samples must not repeat those that are kept.
constexpr std::uint64_t fresh_seed = 3'000'000'019;

/// The flow along the records, up to the last of them.
std::vector<FlowPoint> fresh_flow(const FlowPairSetup& setup, HeadParameters state,
                                  const std::vector<Index>& record, std::uint64_t seed) {
  FlowOptions one = setup.flow;
  one.steps = 1;
  one.record = {0, 1};
  one.stop_gradient = 0;
  one.run.progress = {};
  std::vector<FlowPoint> points;
  for (Index step = 0; points.size() < record.size(); ++step) {
    const auto samples = SampleSet<float>::draw(
        setup.prior, setup.shape, seed * 1'000'003 + fresh_seed + static_cast<std::uint64_t>(step),
        setup.samples);
    std::vector<FlowPoint> pair = gradient_flow(setup.activation, state, samples, one);
    if (setup.flow.run.progress) setup.flow.run.progress(step + 1, record.back());
    state = pair[1].parameters;
    if (step != record[points.size()]) continue;
    points.push_back(std::move(pair[0]));
    points.back().tau = setup.flow.step * static_cast<double>(step);
  }
  return points;
}

}  // namespace

FlowPair flow_pair(const FlowPairSetup& setup, std::uint64_t seed) {
  const HeadParameters start =
      noise_start(setup.activation, setup.shape.heads, setup.prior.features(), setup.eta, seed + start_seed);
  FlowPair pair;
  pair.kept =
      gradient_flow(setup.activation, start,
                    SampleSet<float>::draw(setup.prior, setup.shape, seed, setup.samples), setup.flow);
  // Where the flow on kept samples rests, the other one ends beside it.
  std::vector<Index> record;
  for (const FlowPoint& point : pair.kept)
    record.push_back(static_cast<Index>(std::llround(point.tau / setup.flow.step)));
  pair.fresh = fresh_flow(setup, start, record, seed);
  return pair;
}

}  // namespace widelimit::specialization
