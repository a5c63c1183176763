#pragma once

#include <vector>

#include "widelimit/specialization/loss.hpp"

namespace widelimit::specialization {

/// Which flow of r is used.
///   frame      r is a free matrix of coordinates in a fixed frame; S = r r^T then follows SGD exactly.
///   symmetric  the gradient of r is symmetrised, as the paper prints it; differs from SGD unless S commutes
///              with it.
enum class FlowVariant { frame, symmetric };

/// How the flow is integrated: the paper's explicit step, or Boost.odeint's classical Runge-Kutta scheme with
/// the same step, or its Dormand-Prince scheme with controlled error and dense output.
enum class FlowStepper { euler, runge_kutta4, dormand_prince };

/// Options of gradient_flow(). Times are tau = gamma t, t steps of SGD.
struct FlowOptions {
  double step = 0.02;  ///< Time of one step; for dormand_prince of one record unit. > 0.
  Index steps = 1000;  ///< Last step, >= 0; always recorded.
  /// Steps to record before they are taken, increasing; empty: 0 and the last.
  std::vector<Index> record = {};
  FlowVariant variant = FlowVariant::frame;
  FlowStepper stepper = FlowStepper::euler;
  /// gamma D / N_b of an SGD whose batch noise enters S (euler only); 0: none.
  double batch_noise = 0;
  /// Stop, and record, once every entry of the gradient is below this; 0: never. The euler stepper looks at
  /// every step, the others at the recorded ones.
  double stop_gradient = 0;
  double tolerance = 1e-7;  ///< dormand_prince: relative and absolute error of a step.
  RunControl run = {};      ///< Progress counts steps of the euler stepper, recorded ones of the others.
};

/// The flow at one recorded time.
struct FlowPoint {
  double tau = 0;
  double loss = 0;  ///< On the samples of the flow; estimate final losses on fresh ones.
  /// Largest absolute value of the gradient's entries for what moves: whether a flow has come to rest.
  double gradient = 0;
  HeadParameters parameters;
  Matrix<double> S;  ///< r r^T.
};

/// 0, stride, 2 stride, ..., steps.
[[nodiscard]] std::vector<Index> record_every(Index stride, Index steps);
/// 0, steps, and up to `count` steps between them at equal ratios: plateaus occur at all scales of time.
[[nodiscard]] std::vector<Index> record_growing(Index count, Index steps);

/// Gradient flow of the population loss over a fixed sample set: the limit of online SGD, with tau = gamma t.
///
/// Only the parameters the activation has are moved (b: softmax1, bayes; v: softmax1, softmaxv).
/// Errors  ArgumentError for step <= 0, negative counts or noise, a record that does not increase or exceeds steps,
///         batch_noise with a stepper other than euler, and as sampled_loss; NumericalError where the steps are too
///         long to follow the flow, naming the step at which the state stopped being finite or the loss, which falls
///         along any flow on fixed samples, rose, and the largest step that is stable on the way from there. Under
///         batch noise the loss may rise to twice that of the start.
/// Source  arXiv:2603.03993, Prop. III.2, with r free instead of a symmetric root.
template <typename Scalar>
[[nodiscard]] std::vector<FlowPoint> gradient_flow(HeadActivation activation, const HeadParameters& start,
                                                   const SampleSet<Scalar>& samples,
                                                   const FlowOptions& options);

}  // namespace widelimit::specialization
