#pragma once

#include <cstdint>
#include <vector>

#include "widelimit/specialization/flow.hpp"
#include "widelimit/specialization/sgd.hpp"

/// SGD from a random start, and the flow beside it.
namespace widelimit::specialization {

/// How SGD is run: with vectors of length D, or as the Gram matrix of heads and spikes, the same in distribution.
enum class SgdForm { gram, vector };

/// An SGD from a random start.
struct SgdSetup {
  HeadActivation activation = HeadActivation::softmax;
  Prior prior = Prior::spikes(1, 1);
  Index heads = 0;
  Index dimension = 0;  ///< D; at least H + F + L in Gram form.
  double eta = 1;       ///< Length of a head at the start.
  SgdForm form = SgdForm::gram;
  Matrix<double> planted_m = {};  ///< H x F: overlaps at the start; empty: random ones.
  SgdOptions options;             ///< The start has a seed of its own, made of theirs.
};

/// Errors as sgd(), gram_sgd(), and as the start that they begin from.
[[nodiscard]] std::vector<SgdPoint> sgd_from_random_start(const SgdSetup& setup);

/// The steps of a flow of this step at which SGD was recorded. ArgumentError where a time is no multiple of the step.
[[nodiscard]] std::vector<Index> flow_steps_at(const std::vector<SgdPoint>& points, double step);

/// Of flow_beside().
struct BesideOptions {
  double step = 0.1;        ///< Of the flow, in tau.
  Index samples = 100'000;  ///< Drawn once, with the seed of SGD.
  SampleSymmetry symmetry = SampleSymmetry::plain;
};

/// The flow from the start of an SGD, at its recorded times: with spikes whitened (matched_flow()), and with SGD's
/// batch noise gamma D / N_b. Its m times matched.spike_root is to be compared with that of SGD.
/// Errors  as flow_steps_at(), SampleSet::draw and gradient_flow().
[[nodiscard]] std::vector<FlowPoint> flow_beside(const SgdSetup& setup, const std::vector<SgdPoint>& points,
                                                 const MatchedFlow& matched, const BesideOptions& options);

}  // namespace widelimit::specialization
