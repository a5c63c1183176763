#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace widelimit::specialization {

/// The outcome of an experiment: a table of numbers and named results.
struct ExperimentTable {  // NOLINT(bugprone-exception-escape): json's destructor may allocate
  std::vector<std::string> columns;
  std::vector<std::vector<double>> rows;  ///< NaN where a value does not exist.
  nlohmann::json summary;                 ///< E.g. the loss of the trained heads on fresh samples.
};

/// "flow", "sgd", "compare", "bayes", "hessian", "prune", "phase-transition".
const std::vector<std::string>& experiment_names();

/// Runs an experiment described in JSON. Fields (with defaults) by name:
///
///   all             prior (Prior::from_json), tokens, seed (1)
///   flow, prune     activation, heads, tau, step (0.1), samples (100000), fresh_samples (200000), eta (1),
///                   stepper ("euler", "runge_kutta4", "dormand_prince"), variant ("frame", "symmetric"),
///                   symmetry ("plain", "closed"), batch_noise (0), stop_gradient (0), records (200), start
///                   ({m, either r or S, b, v})
///   prune           also normaliser ("kept_heads", "full_model")
///   sgd, compare    activation, heads, dimension, tau, batch (dimension), gamma (0.02), eta (1), records
///                   (100), form ("gram", "vector"), planted_m
///   compare         also step (0.1), samples (100000), symmetry ("plain"): the flow from SGD's own start,
///                   spikes whitened, batch noise included
///   bayes           samples (1000000)
///   hessian         activation, heads; the prior gives the eigenvalues
///   phase-transition  activation, heads, dimension, etas, runs (2), tau, step (0.1), samples (20000), delta
///                   (0.2), symmetry ("closed"): specialisation times of flows from random starts of D
///                   dimensions
///
/// Errors  ArgumentError for an unknown experiment, naming missing, unknown and unfit fields; and those of
///         the functions that do the work.
ExperimentTable run_experiment(std::string_view name, const nlohmann::json& config);

}  // namespace widelimit::specialization
