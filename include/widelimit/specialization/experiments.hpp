#pragma once

#include <optional>

#include "widelimit/results/experiment.hpp"
#include "widelimit/specialization/configuration.hpp"
#include "widelimit/specialization/image_task.hpp"

/// The experiments of `widelimit heads`, and of the Python functions that do the same.
namespace widelimit::specialization {

/// All of them, with the fields of experiment_fields():
///
///   flow              gradient flows until they come to rest. The summary holds the start with the median
///                     loss, whether all starts came to rest ("converged"), the spread of the losses
///                     ("losses") and every start ("starts")
///   sgd               online SGD at finite dimension
///   compare           SGD beside the flow from its own start, spikes whitened, batch noise included
///   bayes             Bayes risk
///   hessian           constants and rates at the origin; the prior gives the eigenvalues
///   prune             flow, then greedy removal of heads; "pruned": the spread after each removal
///   attention         flow, then the weights of the heads over the tokens of single sequences
///   phase-transition  specialisation times of flows from random starts of D dimensions
///   feature-times     the same for each feature
///   digits            SGD on pictures
///   digit-times       specialisation times of it, for each class
///   resampling        a flow on samples that are kept beside one on fresh samples at every step
[[nodiscard]] const results::Theory& experiments();

// Single experiments, on what was read already. Tables hold the whole paths (tau, loss, gradient, m, S, r, b, v of
// flows; tau, loss, m, q, p, S, b, v of SGD) under "start", the number of their start; those of two dynamics are
// further tables.

/// "curvatures" of `unwritten`: of each start, null where it did not come to rest.
[[nodiscard]] results::Results flow_results(const TrainingSetup& setup,
                                            const std::optional<HeadParameters>& start);
[[nodiscard]] results::Results sgd_results(const SgdSetup& setup, Index starts);
/// Tables "sgd" and "flow".
[[nodiscard]] results::Results comparison_results(const Comparison& both, Index starts);
/// Tables "kept" and "fresh".
[[nodiscard]] results::Results resampling_results(const FlowPairSetup& setup, Index starts,
                                                  std::uint64_t seed);
[[nodiscard]] results::Results digits_results(ConfigReader& fields, const ImageTask& task,
                                              const RunControl& run);

/// Times over dimensions, "etas" and "starts"; the table "ends" says how runs ended.
[[nodiscard]] results::Results phase_transition_results(ConfigReader& fields, const Prior& prior,
                                                        const results::Control& control);
[[nodiscard]] results::Results feature_times_results(ConfigReader& fields, const Prior& prior,
                                                     const results::Control& control);
[[nodiscard]] results::Results digit_times_results(ConfigReader& fields, const ImageTask& task,
                                                   const results::Control& control);

}  // namespace widelimit::specialization
