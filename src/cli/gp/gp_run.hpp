#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/grams/store_options.hpp"
#include "cli/program/interrupt.hpp"
#include "cli/ranks/tile_dealer.hpp"
#include "cli/tasks/gp_task.hpp"
#include "widelimit/gp/conjugate_gradients.hpp"
#include "widelimit/gp/inference.hpp"
#include "widelimit/gp/selection.hpp"
#include "widelimit/gp/solver_choice.hpp"
#include "widelimit/kernel/gram.hpp"

namespace widelimit::cli {

struct GpOptions {
  Kernels kernels = Kernels::both;
  std::optional<double> regulariser;                        ///< Relative; absent: chosen by the criterion.
  std::optional<gp::Criterion> criterion;                   ///< Absent: see criterion_of().
  std::vector<double> candidates = gp::regulariser_grid();  ///< Relative; what is chosen from.
  std::optional<double> amplitude;                          ///< See gp::InferenceOptions.
  std::vector<double> times;                                ///< Times of the gradient flow, besides infinity.
  bool flip = false;                  ///< Kernels averaged over images and mirror images.
  std::filesystem::path gram_folder;  ///< Where Gram matrices are kept; empty: nowhere.
  int threads = 0;
  bool targets_as_they_are = false;  ///< Numbers are neither centred nor scaled.
  gp::Solver solver = gp::Solver::cholesky;
  double residual =
      gp::ConjugateGradientOptions{}.relative_residual;  ///< At which conjugate gradients stop, relative.
  /// Folder for the stores of the Gram matrices, train, validation-train and test-train; empty: they are kept in memory
  /// only.
  std::filesystem::path store = {};
  StoreArguments tiles = {};     ///< How the stores are computed; not their folder.
  std::string command = {};      ///< What makes them, for StoreOptions::command.
  TileDealer* dealer = nullptr;  ///< Where several processes fill the stores: the first of them predicts.
};

/// Names of all predictions: "nngp", "ntk", "ntk_time0", ...
[[nodiscard]] std::vector<std::string> prediction_names(const GpOptions& options);

/// What regularisers are chosen by: what the user says, or leave-one-out densities, which predicted best where it was
/// measured (docs/inference.md); solvers that do not factorize have validation errors only.
[[nodiscard]] gp::Criterion criterion_of(const GpOptions& options);

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
                              const Interrupt& interrupt);

}  // namespace widelimit::cli
