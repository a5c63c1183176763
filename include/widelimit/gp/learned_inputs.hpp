#pragma once

#include <optional>
#include <vector>

#include "widelimit/gp/feature_map.hpp"
#include "widelimit/gp/inference.hpp"
#include "widelimit/gp/noise.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/inputs.hpp"
#include "widelimit/network/network.hpp"
#include "widelimit/run_control.hpp"

/// Which inputs matter, learned from the training data.
namespace widelimit::gp {

/// How a map of the channels is learned. Both ways begin with inputs and network as they are.
enum class InputLearning {
  none,
  /// A scale for each channel, with the variances of weights and biases and the noise, by the gradient of the evidence.
  relevance,
  /// Recursive feature machines: kernel regression, then the average gradient outer product of its predictor as the
  /// next metric of the inputs, and so on.
  features
};

struct LearningOptions {
  InputLearning how = InputLearning::none;
  Kernels kernel = Kernels::nngp;  ///< nngp or ntk: whose evidence, or whose regression.
  TargetKind kind = TargetKind::numbers;
  /// Of each channel; channels of the same number share a scale. Empty: each has its own.
  std::vector<Index> groups = {};
  /// Of each input; those of a group are left out together. Empty: each by itself. Equal inputs are one, with the mean
  /// of their targets.
  std::vector<Index> row_groups = {};
  /// relevance: the noise, if it is given; else it is learned as well.
  std::optional<Noise> noise = {};
  /// relevance: whether variances of dense and convolutional layers are learned as well.
  bool variances = true;
  int steps = 150;  ///< relevance: evaluations of the evidence at most.
  /// relevance: standard deviation of the normal prior of log scales around their mean. It was measured:
  /// docs/inference.md.
  double spread = 2;
  int rounds = 0;             ///< features: at least 1.
  bool full_matrix = true;    ///< features: all of the outer product, or its diagonal alone.
  Index most_inputs = 1'000;  ///< Of more, so many evenly spaced ones are learned from.
  /// What is learned is kept only if it predicts better: each third of the data, from what was learned from the other
  /// two, by more than the standard error of the difference. Costs about twice as much again.
  bool check = true;
};

/// What was learned, and how it does.
struct LearnedInputs {
  FeatureMap map;
  Network network;                         ///< With its learned variances.
  std::optional<double> regulariser = {};  ///< Relative; that which was learned, or chosen by leave-one-out.
  /// Of data that nothing was learned from (LearningOptions::check): the mean negative log density of standardised
  /// numbers, or the log loss of classes. Without a check 0.
  double before = 0;
  double after = 0;           ///< With what was learned, whether it was kept or not.
  double standard_error = 0;  ///< Of the difference of both.
  bool kept = true;           ///< If not, the map is the identity and the network the given one.
  FeatureMap rejected = {};   ///< What was learned and not kept.
  /// relevance: the log evidence before and after; features: the score of training
  /// data left out one by one after each round, the first before any; the best round is taken.
  std::vector<double> course = {};
  int evaluations = 0;  ///< relevance: of the evidence.
};

/// Learns which inputs matter. Computes in double, whatever the precision of the inputs.
///
/// y        targets [n, outputs], standardised or class scores
/// Errors   ArgumentError for fewer than 6 inputs, options out of range, groups of another number than channels, ragged
///          images, and networks that have a layer without a backward pass; NetworkError, relevance, for layers that
///          files do not know, unless `variances` is false; the errors of gram() and Regression.
/// Cost     relevance: a step takes a Gram matrix, one or two backward passes (gram_vjp(), gram_number_vjp()) and 4 n^3
///          operations, n <= most_inputs. features: a round takes a Gram matrix, a backward pass for each output and
///          20 times n^3 operations.
/// Source   relevance: MacKay 1995, Probable networks and plausible predictions, section 7; Rasmussen & Williams 2006,
///          equation 5.9. features: Radhakrishnan et al., Science 383, 2024, Mechanism for feature learning in neural
///          networks and backpropagation-free machine learning models, algorithm 1.
template <typename Scalar>
[[nodiscard]] LearnedInputs learn_inputs(const Network& network, const Inputs<Scalar>& x,
                                         const Matrix<double>& y, const LearningOptions& options,
                                         const RunControl& run = {});

/// Average gradient outer product [channels, channels] of the predictor f(x) = K(x, X) weights at its own inputs X: the
/// mean over inputs, summed over outputs and positions, of gradients times their transposes. ArgumentError for weights
/// [n, outputs] that do not fit, and the errors of gram_vjp().
[[nodiscard]] Matrix<double> gradient_outer_product(const Network& network, const Inputs<double>& x,
                                                    const Matrix<double>& weights,
                                                    Kernels kernel = Kernels::nngp,
                                                    const RunControl& run = {});

}  // namespace widelimit::gp
