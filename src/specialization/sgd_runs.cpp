#include "widelimit/specialization/sgd_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "numerics/count.hpp"
#include "widelimit/error.hpp"
#include "widelimit/specialization/seeds.hpp"

namespace widelimit::specialization {

namespace {

/// `start` with the overlaps that the setup plants. Without such overlaps the start stays random.
template <typename Start>
Start planted(Start start, const SgdSetup& setup) {
  return setup.planted_m.size() == 0 ? std::move(start) : plant(std::move(start), setup.planted_m);
}

}  // namespace

std::vector<SgdPoint> sgd_from_random_start(const SgdSetup& setup) {
  // The start's seed is apart from that of the batches.
  const std::uint64_t seed = setup.options.seed + start_seed;
  const Index features = setup.prior.features();
  if (setup.form == SgdForm::vector)
    return sgd(
        setup.activation, setup.prior,
        planted(random_start(setup.activation, setup.heads, features, setup.dimension, setup.eta, seed),
                setup),
        setup.options);
  return gram_sgd(
      setup.activation, setup.prior,
      planted(random_gram_start(setup.activation, setup.heads, features, setup.dimension, setup.eta, seed),
              setup),
      setup.options);
}

std::vector<Index> flow_steps_at(const std::vector<SgdPoint>& points, double step) {
  std::vector<Index> steps;
  for (const SgdPoint& point : points) {
    steps.push_back(numerics::checked_count(std::round(point.tau / step), numerics::most_steps,
                                            "steps up to a recorded time"));
    if (std::abs(static_cast<double>(steps.back()) * step - point.tau) > 1e-9 * std::max(1.0, point.tau))
      throw ArgumentError(
          fmt::format("SGD is recorded at tau = {}, which is no multiple of the flow's step {}; "
                      "change records or step",
                      point.tau, step));
  }
  return steps;
}

std::vector<FlowPoint> flow_beside(const SgdSetup& setup, const std::vector<SgdPoint>& points,
                                   const MatchedFlow& matched, const BesideOptions& options) {
  const SgdOptions& sgd = setup.options;
  FlowOptions flow;
  flow.step = options.step;
  flow.record = flow_steps_at(points, options.step);
  flow.steps = flow.record.back();
  // This is the noise of SGD's batches, in the units of the flow (docs/theory/head-specialization.md, section 3).
  flow.batch_noise = sgd.gamma * static_cast<double>(setup.dimension) / static_cast<double>(sgd.batch);
  flow.run = sgd.run;
  const auto samples = SampleSet<float>::draw(setup.prior, {sgd.tokens, setup.heads, options.samples},
                                              sgd.seed, {options.symmetry, matched.spike_root, sgd.run});
  return gradient_flow(setup.activation, matched.start, samples, flow);
}

}  // namespace widelimit::specialization
