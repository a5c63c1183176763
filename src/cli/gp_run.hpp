#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/gp_solver.hpp"
#include "cli/gp_task.hpp"
#include "cli/interrupt.hpp"
#include "cli/tile_dealer.hpp"
#include "widelimit/gp/selection.hpp"
#include "widelimit/kernel/gram.hpp"

namespace widelimit::cli {

struct GpOptions {
  Kernels kernels = Kernels::both;
  std::optional<double> regulariser;       ///< Relative; absent: chosen by the criterion.
  std::optional<gp::Criterion> criterion;  ///< Absent: accuracy of classes, mean squared error of numbers.
  std::vector<double> candidates = gp::regulariser_grid();  ///< Relative; what is chosen from.
  std::optional<double> amplitude;    ///< Factor on the kernels; absent: fitted, see below.
  std::vector<double> times;          ///< Times of the gradient flow, besides infinity.
  bool flip = false;                  ///< Kernels averaged over images and mirror images.
  std::filesystem::path gram_folder;  ///< Where Gram matrices are kept; empty: nowhere.
  int threads = 0;
  Solver solver = Solver::cholesky;
  double residual = 1e-10;  ///< At which conjugate gradients stop, relative.
  /// Folder for the stores of the Gram matrices, train, validation-train and test-train; empty: they are kept in memory
  /// only.
  std::filesystem::path store = {};
  TileDealer* dealer = nullptr;  ///< Where several processes fill the stores: the first of them predicts.
};

/// Names of all predictions: "nngp", "ntk", "ntk_time0", ...
[[nodiscard]] std::vector<std::string> prediction_names(const GpOptions& options);

/// How good the predictions for test inputs with known targets are.
struct GpScores {
  std::optional<double> accuracy;  ///< Classes only.
  double mean_squared_error;
  double negative_log_predictive_density;            ///< Of the observation: variance + noise.
  std::optional<double> expected_calibration_error;  ///< Classes only.
};

/// What the weights of a prediction took: those of all candidates together.
struct IterativeSolution {
  int passes;                ///< Over the Gram matrix.
  double relative_residual;  ///< Of the chosen one.
};

/// Predictions with one kernel: GP regression with the NNGP, or gradient flow with the NTK.
struct GpPrediction {
  std::string name;            ///< As files are named: "nngp", "ntk", "ntk_time0", ...
  std::optional<double> time;  ///< Of the gradient flow, infinite for "ntk".
  double regulariser;
  double amplitude;  ///< Given, or that of gp::Regression and gp::GradientFlow::leave_one_out_amplitude().
  double noise_variance;                          ///< Of the scaled kernel.
  std::optional<double> log_marginal_likelihood;  ///< NNGP only.
  Matrix<double> mean;                            ///< [n_test, outputs]
  Vector<double> variance;                        ///< [n_test], of the function without noise.
  Matrix<double> probabilities;  ///< [n_test, classes], of the observation; empty for numbers.
  std::optional<GpScores> scores;
  double solve_seconds;
  gp::Criterion criterion;                       ///< Of the choice among the candidates.
  std::vector<gp::RegulariserScore> candidates;  ///< Empty where the regulariser was given.
  double noise_floor = 0;                        ///< Of the candidates, or of the one that was given.
  std::optional<IterativeSolution> iterations;   ///< Of conjugate gradients.
};

struct GpResult {
  double gram_seconds;  ///< For all kernels together.
  std::vector<GpPrediction> predictions;
};

/// Gram matrices of one network, then predictions for the test inputs (by the first of several processes). Test inputs
/// meet the training inputs only, and test targets only the finished predictions. Throws what the library throws, and
/// Cancelled.
template <typename Scalar>
[[nodiscard]] GpResult run_gp(const Network& network, const GpTask<Scalar>& task, const GpOptions& options,
                              const Interrupt& interrupt);

}  // namespace widelimit::cli
