#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/grams/store_options.hpp"
#include "cli/program/run_context.hpp"
#include "cli/tasks/gp_task.hpp"
#include "widelimit/gp/fit_fields.hpp"
#include "widelimit/gp/inference.hpp"
#include "widelimit/gp/model.hpp"
#include "widelimit/gp/solver_choice.hpp"
#include "widelimit/kernel/gram.hpp"

namespace widelimit::cli {

/// How one network predicts.
struct GpOptions {
  gp::InferenceOptions inference;
  bool flip = false;                  ///< Kernels averaged over images and mirror images.
  std::filesystem::path gram_folder;  ///< Where Gram matrices are kept; empty: nowhere.
  /// Its folder is that of several stores: train, validation-train and test-train.
  StoreArguments store;
  gp::Solver solver = gp::Solver::cholesky;
  std::string device = "cpu";    ///< Where kernels are computed.
  bool exact_attention = false;  ///< See GramOptions.
  gp::FitRequest request = {};   ///< With the solver, once it is known.
};

/// What the Gram matrices of a run are computed with; it is planned with the same.
[[nodiscard]] GramOptions gram_options(const GpOptions& options, const RunContext& context);

/// For searches: how fit would fit a network to the same data with the options `given`.
[[nodiscard]] gp::ModelOptions model_options(gp::ModelOptions given, const GpOptions& options,
                                             const GpTaskFacts& task, const RunContext& context);

/// Names of all predictions: "nngp", "ntk", "ntk_time0", ...
[[nodiscard]] std::vector<std::string> prediction_names(const gp::InferenceOptions& options);

using GpPrediction = gp::KernelPrediction;

struct GpResult {
  double gram_seconds;  ///< For all kernels together.
  /// Of a part (--part) of stores that others have yet to complete, none.
  std::vector<GpPrediction> predictions;
};

/// Gram matrices of one network, then predictions for the test inputs (by the first of several processes). Test inputs
/// meet the training inputs only, and test targets only the finished predictions. Throws what the library throws, and
/// Cancelled.
template <typename Scalar>
[[nodiscard]] GpResult run_gp(const Network& network, const GpTask<Scalar>& task, const GpOptions& options,
                              const RunContext& context);

}  // namespace widelimit::cli
