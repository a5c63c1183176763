#pragma once

#include <optional>
#include <string>
#include <vector>

#include "widelimit/gp/fit.hpp"
#include "widelimit/index.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::gp {

struct InferenceOptions {
  Kernels kernels = Kernels::both;
  std::vector<double> times = {};  ///< Times of the gradient flow, besides infinity.
  FitOptions fit = {};
  /// The regularisers are chosen with validation data held back, then fitted to both; see ModelOptions.
  bool refit = false;
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
  Vector<double> noise_variance;                  ///< [outputs]; of logarithms, where they are fitted.
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

  /// Variances of observations, [n_test, outputs].
  [[nodiscard]] Matrix<double> observation_variance() const {
    return law.observation_variances(mean, variance, noise_variance);
  }
};

/// The predictions of one kernel after the other, for test inputs whose targets [n_test, outputs], if they are known,
/// are compared with them. The Gram matrices are used up. Throws the errors of require_rows(), require_fit() and the
/// solvers, and Cancelled.
[[nodiscard]] std::vector<KernelPrediction> infer(Problem problem, const std::optional<Matrix<double>>& test,
                                                  const InferenceOptions& options, GramSources grams,
                                                  const MakeSolver& make_solver);

/// The first prediction of gradient flow, "ntk", is that at infinite time.
[[nodiscard]] std::string flow_name(std::size_t i);

/// Scores of predictions with variances of observations, [n_test, outputs], and their law.
[[nodiscard]] PredictionScores prediction_scores(const Matrix<double>& mean, const Matrix<double>& variances,
                                                 const Matrix<double>& probabilities,
                                                 const Matrix<double>& targets,
                                                 const ObservationLaw& law = {});

}  // namespace widelimit::gp
