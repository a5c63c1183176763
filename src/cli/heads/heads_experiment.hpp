#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/output/result_table.hpp"
#include "widelimit/fields/config_reader.hpp"
#include "widelimit/run_control.hpp"

namespace widelimit::cli {

/// "flow", "sgd", "compare", "bayes", "hessian", "prune", "phase-transition", "feature-times",
/// "digit-times", "resampling".
[[nodiscard]] const std::vector<std::string>& experiment_names();

/// Runs an experiment described in JSON by its specialization::experiment_fields().
///
///   flow              gradient flows until they come to rest. The summary holds the start with the median
///                     loss, whether all starts came to rest ("converged"), the spread of the losses
///                     ("losses") and every start ("starts")
///   prune             the same, then greedy removal of heads; "pruned": the spread after each removal
///   sgd               online SGD at finite dimension
///   compare           SGD beside the flow from its own start, spikes whitened, batch noise included
///   bayes             Bayes risk
///   hessian           constants and rates at the origin; the prior gives the eigenvalues
///   phase-transition  specialisation times of flows from random starts of D dimensions
///   feature-times     the same for each feature
///   digit-times       the same for SGD on pictures and each of their classes
///   resampling        a flow on samples that are kept beside one on fresh samples at every step
///
/// Progress is that of each part of an experiment.
///
/// Errors  ArgumentError for an unknown experiment, naming missing, unknown and unfit fields; and those of
///         the functions that do the work.
[[nodiscard]] ResultTable run_experiment(std::string_view name, const nlohmann::json& config,
                                         const RunControl& run = {});

}  // namespace widelimit::cli
