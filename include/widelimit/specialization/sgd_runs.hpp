#pragma once

#include <cstdint>
#include <vector>

#include "widelimit/specialization/flow.hpp"
#include "widelimit/specialization/sgd.hpp"

/// SGD from a random start, and the flow from the same start.
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
  SgdOptions options;             ///< The start has its own seed, made from theirs.
};

/// Errors are those of sgd() and gram_sgd(), and of their starts.
[[nodiscard]] std::vector<SgdPoint> sgd_from_random_start(const SgdSetup& setup);

/// The steps of a flow with this step at which SGD was recorded. ArgumentError if a time is not a multiple of the step.
[[nodiscard]] std::vector<Index> flow_steps_at(const std::vector<SgdPoint>& points, double step);

/// Options of flow_beside().
struct BesideOptions {
  double step = 0.1;        ///< Step of the flow, in tau.
  Index samples = 100'000;  ///< Drawn once, with the seed of SGD.
  SampleSymmetry symmetry = SampleSymmetry::plain;
};

/// The flow from the start of an SGD, at its recorded times: with spikes whitened (matched_flow()), and with SGD's
/// batch noise gamma D / N_b. Compare its m times matched.spike_root with that of SGD.
/// Errors  as flow_steps_at(), SampleSet::draw and gradient_flow().
[[nodiscard]] std::vector<FlowPoint> flow_beside(const SgdSetup& setup, const std::vector<SgdPoint>& points,
                                                 const MatchedFlow& matched, const BesideOptions& options);

}  // namespace widelimit::specialization
