#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gp/gram_sources/iterative_kernels.hpp"
#include "gp/gram_sources/model_kernel.hpp"
#include "widelimit/gp/calibration.hpp"
#include "widelimit/gp/model.hpp"
#include "widelimit/gp/observation_law.hpp"
#include "widelimit/gp/posterior.hpp"

namespace widelimit::gp {

/// Kernels between new inputs and the training inputs.
struct CrossKernels {
  // For factorized posteriors, in double.
  Matrix<double> nngp;
  Matrix<double> ntk;
  // For those of conjugate gradients.
  std::shared_ptr<const GramSource> source = {};
  std::function<KernelEquations(const IterativeWeights&)> equations = {};
};

/// Outputs that share a regulariser: their posterior has the amplitude 1 and standardised targets.
struct OutputPosterior {
  std::vector<Index> outputs;
  Posterior posterior;
  Vector<double> amplitudes;                ///< One for each of these outputs.
  ClassCalibration class_calibration = {};  ///< From scores of classes to probabilities.
  /// Relative; NaN in models that were saved before it was kept.
  double regulariser = std::numeric_limits<double>::quiet_NaN();
};

/// The rows of a model some of whose inputs are equal.
struct RepeatedRows {
  std::vector<Index> inputs = {};  ///< Which of the model's inputs each row has; empty: each has its own.
  Matrix<double> targets = {};     ///< [rows, outputs], as those of ModelState; empty as above.
  Vector<double> weights = {};     ///< [rows]; empty as above, and where none are given.
};

using AnyModelKernel = std::variant<ModelKernel<float>, ModelKernel<double>>;

/// Of the type of the training inputs.
using AnyIterativeKernels =
    std::variant<std::shared_ptr<IterativeKernels<float>>, std::shared_ptr<IterativeKernels<double>>>;

/// All that a model is. It never changes, so that copies of a model share it.
struct ModelState {
  AnyModelKernel kernel;
  std::vector<OutputPosterior> posteriors;
  /// [n, outputs], in their own units, or their logarithms where these are fitted: means over the rows of each input.
  Matrix<double> targets;
  TargetScale scale;
  std::vector<std::string> class_names;
  Preprocessing preprocessing;
  std::string preparation;  ///< The text of a JSON object.
  std::vector<Selection> selections;
  FeatureMap map = {};  ///< Of the channels of new inputs; the training inputs went through it.
  std::optional<LearnedInputs> learned = {};
  /// Roots of the weights of the training inputs, [n], or empty: the posteriors are those of the Gram matrix whose rows
  /// and columns, and of the targets whose rows, are multiplied by them, so that all noise is alike.
  Vector<double> row_factors = {};
  AnyIterativeKernels iterative = {};  ///< Null unless the posteriors are IterativeWeights.
  ObservationLaw law = {};             ///< Of numbers around their means.
  std::vector<double> times = {};      ///< ModelOptions::times
  RepeatedRows rows = {};
  std::vector<Index> groups = {};  ///< Of the inputs; see DistinctInputs.

  [[nodiscard]] bool fits_logarithms() const { return law.of_logarithms; }
};

/// Null unless conjugate gradients fitted the model.
[[nodiscard]] const IterativeWeights* iterative_weights(const ModelState& state);

[[nodiscard]] bool is_trained(const ModelState& state);

/// ArgumentError, preceded by `where`, for a number that is no time of training.
void require_time(double time, const char* where);

/// From what is left out of inputs to that of their rows, which have the noise of their own weights, not of the sum.
[[nodiscard]] ModelLeaveOneOut row_by_row(const ModelState& state, const ModelLeaveOneOut& inputs,
                                          const Vector<double>& noise);

/// What a variance of standardised targets with the amplitude 1 is multiplied with, for output k of a part.
[[nodiscard]] double variance_factor(const ModelState& state, const OutputPosterior& part, std::size_t k);

/// From predictions of logarithms to those of the targets: take_from_logarithms(), of several inputs together.
void take_joint_from_logarithms(JointPrediction& prediction, const Vector<double>& noise, double scale);
/// Samples of logarithms, where these are fitted, become those of the targets.
[[nodiscard]] std::vector<Matrix<double>> in_units_of_targets(std::vector<Matrix<double>> samples,
                                                              const ModelState& state,
                                                              const Vector<double>& noise);
/// What deviations of samples are multiplied with: those of logarithms belong to the law's scale, as their means do.
[[nodiscard]] double sample_scale(const ModelState& state);
/// take_from_logarithms() of predictions of observations that were left out, to which the noise belongs already, by a
/// normal law.
void take_left_out_from_logarithms(ModelLeaveOneOut& others, const ModelState& state);

}  // namespace widelimit::gp
