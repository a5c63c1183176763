#pragma once

#include <cstdint>
#include <vector>

#include "widelimit/specialization/flow.hpp"
#include "widelimit/specialization/samples.hpp"

/// What keeping the samples of a flow changes: the same flow with samples that are drawn anew at every step.
namespace widelimit::specialization {

/// The pair of flows that flow_pair() follows.
struct FlowPairSetup {
  HeadActivation activation = HeadActivation::softmax;
  Prior prior = Prior::spikes(1, 1);
  SampleShape shape;      ///< Of the set that is kept, and of each that is drawn.
  SampleOptions samples;  ///< Of both.
  /// Both flows end once every entry of the gradient on the kept samples is below flow.stop_gradient. Progress counts
  /// the steps of one flow after the other.
  FlowOptions flow;
  double eta = 1;  ///< Length of a head at the random start.
};

/// A flow on samples that are kept, and one from the same start for which they are drawn anew at every step, at the
/// same times.
struct FlowPair {
  std::vector<FlowPoint> kept, fresh;
};

/// Errors  as SampleSet::draw, noise_start() and gradient_flow().
/// Cost    that of gradient_flow(), twice, and of drawing the samples in every step.
[[nodiscard]] FlowPair flow_pair(const FlowPairSetup& setup, std::uint64_t seed);

}  // namespace widelimit::specialization
