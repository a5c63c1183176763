#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "widelimit/gp/fit.hpp"
#include "widelimit/index.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::gp {

struct InferenceOptions {
  Kernels kernels = Kernels::both;
  std::optional<double> regulariser = {};  ///< Relative; absent: chosen by the criterion.
  Criterion criterion = Criterion::leave_one_out;
  std::vector<double> candidates = regulariser_grid();  ///< Relative; the values to choose from.
  /// Factor on the kernels of standardised targets; absent: fitted, see Regression and
  /// GradientFlow::leave_one_out_amplitude().
  std::optional<double> amplitude = {};
  std::vector<double> times = {};  ///< Times of the gradient flow, besides infinity.
  bool targets_as_they_are = false;
  /// The regularisers are chosen with validation data held back, then fitted to both; see ModelOptions.
  bool refit = false;
  int threads = 0;
  double residual = 1e-10;  ///< Relative residual at which conjugate gradients stop.
  /// Of the training inputs, with the NNGP alone; see ModelOptions. Known noise takes the place of the regulariser, and
  /// its amplitude, unless it is given, is searched for with the matrix in memory.
  Vector<double> noise_variances = {};
  Vector<double> weights = {};

  /// Whether a regulariser is chosen.
  [[nodiscard]] bool chooses() const { return !regulariser && noise_variances.size() == 0; }
};

/// The targets from which predictions are made, and with which they are compared.
struct InferenceTargets {
  TargetKind kind;
  const Matrix<double>& train;                ///< [n, outputs]
  const Matrix<double>* validation;           ///< [n_validation, outputs]; null without validation data.
  const std::optional<Matrix<double>>& test;  ///< [n_test, outputs], if they are known.
};

/// The quality of predictions for test inputs with known targets.
struct PredictionScores {
  std::optional<double> accuracy;  ///< Classes only.
  double mean_squared_error;
  double negative_log_predictive_density;            ///< Of an observation: variance + noise.
  std::optional<double> expected_calibration_error;  ///< Classes only.
};

/// Predictions with one kernel, in the units of the targets: GP regression with the NNGP, or gradient flow with the
/// NTK. Numbers an output: all equal for classes, which share regulariser and amplitude.
struct KernelPrediction {
  std::string name;                               ///< As in file names: "nngp", "ntk", "ntk_time0", ...
  std::optional<double> time;                     ///< Of the gradient flow, infinite for "ntk".
  Vector<double> regulariser;                     ///< [outputs]
  Vector<double> amplitude;                       ///< [outputs], of standardised targets.
  Vector<double> noise_variance;                  ///< [outputs]
  std::optional<double> log_marginal_likelihood;  ///< Of the targets; NNGP only.
  Matrix<double> mean;                            ///< [n_test, outputs]
  Matrix<double> variance;                        ///< [n_test, outputs], of the function without noise.
  /// From scores to probabilities; none for numbers, with a given amplitude, and if nothing is left out.
  ClassCalibration class_calibration = {};
  Matrix<double> probabilities;  ///< [n_test, classes], of the observation; empty for numbers.
  std::optional<PredictionScores> scores;
  double solve_seconds;
  Criterion criterion;  ///< Of the choice among the candidates.
  /// The scores of the candidates, for all outputs or for each; empty if the regulariser was given.
  std::vector<Selection> selections;
  double noise_floor = 0;  ///< Of the candidates, or of the given one.
  /// An estimate for K + lambda I with the smallest regulariser of all outputs; 0 at finite times.
  double condition_number = 0;
  std::optional<IterativeSolution> iterations;  ///< Of conjugate gradients.
  ObservationLaw law =
      {};  ///< Of numbers; Student's t where the amplitude was fitted and the noise is not known.
};

/// The predictions of one kernel after the other. The Gram matrices are used
/// up. Throws the errors of the solvers, Cancelled, and ArgumentError for noise variances and weights that do not fit.
[[nodiscard]] std::vector<KernelPrediction> infer(
    const InferenceTargets& targets, const InferenceOptions& options, GramSources grams,
    const MakeSolver& make_solver, const std::stop_token& stop = {},
    const std::function<void(const std::string& kernel, int passes, double residual)>& progress = {});

/// The first prediction of gradient flow, "ntk", is that at infinite time.
[[nodiscard]] std::string flow_name(std::size_t i);

/// Scores of predictions with variances of observations, [n_test, outputs], and their law.
[[nodiscard]] PredictionScores prediction_scores(const Matrix<double>& mean, const Matrix<double>& variances,
                                                 const Matrix<double>& probabilities,
                                                 const Matrix<double>& targets,
                                                 const ObservationLaw& law = {});

}  // namespace widelimit::gp
