#pragma once

#include <cstdint>
#include <functional>
#include <variant>
#include <vector>

#include "widelimit/finite/finite_network.hpp"

namespace widelimit::finite {

/// Losses are sums over inputs and outputs, not means: gradient descent on the squared loss with learning
/// rate eta follows the gradient flow (gp::GradientFlow) at time eta steps. A mini-batch's loss is multiplied by
/// n / batch, so that learning rates need no change.
enum class Loss {
  squared,       ///< Half the sum of squared differences to the targets.
  cross_entropy  ///< - sum targets o log softmax(outputs); targets are probabilities of the classes.
};

/// parameters -= learning_rate gradient.
struct GradientDescent {};
/// Gradient descent with momentum.
struct Momentum {
  double decay = 0.9;  ///< v <- decay v + gradient, parameters -= learning_rate v; in [0, 1).
};
/// Source  Kingma, Ba, "Adam: a method for stochastic optimization", ICLR 2015, algorithm 1.
struct Adam {
  double first_decay = 0.9;
  double second_decay = 0.999;
  double epsilon = 1e-8;
};

/// Options of train(): full-batch gradient descent unless changed.
struct TrainingOptions {
  Loss loss = Loss::squared;
  std::variant<GradientDescent, Momentum, Adam> optimiser = {};
  double learning_rate = 0.1;  ///< > 0
  Index steps = 100;           ///< >= 0
  /// Inputs in each step, drawn without replacement until all have been seen, then anew; 0: all of them.
  Index batch = 0;
  std::uint64_t seed = 0;  ///< Of the batches.
  /// Called after every step with its number, from 1 on, and the loss before it.
  std::function<void(Index step, double loss)> progress = {};
};

/// The results of a training run besides the network's new parameters.
struct TrainingResult {
  std::vector<double> losses;  ///< Of each step's batch before the step, scaled to all inputs.
};

/// Trains the network in place.
///
/// Errors  ArgumentError for options out of range or targets that are not [n, outputs] (cross entropy: rows of
///         probabilities); NumericalError when the loss is not finite, naming the step: the learning rate is too large.
///         Cost a step: three forward passes of the batch and the parameters a few times over.
template <typename Scalar>
TrainingResult train(FiniteNetwork<Scalar>& network, const Inputs<Scalar>& x, const Matrix<Scalar>& targets,
                     const TrainingOptions& options);

/// The loss of outputs [n, outputs] for targets of the same size.
template <typename Scalar>
[[nodiscard]] double loss_of(Loss loss, const Matrix<Scalar>& outputs, const Matrix<Scalar>& targets);

}  // namespace widelimit::finite
