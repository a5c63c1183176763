#pragma once

#include <string>
#include <utility>
#include <variant>

#include "widelimit/gp/gradient_flow.hpp"
#include "widelimit/gp/regression.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// Networks trained for a time, and the weights that their mean is made of.
struct TrainedNetworks {
  GradientFlow flow;
  double time;
  Matrix<double> weights;

  TrainedNetworks(GradientFlow fitted, double training_time)
      : flow{std::move(fitted)}, time{training_time}, weights{flow.weights(time)} {}
};

/// Weights that conjugate gradients found, with the amplitude 1. No matrix was factorized: variances are solved for
/// when they are asked for.
struct IterativeWeights {
  std::string kernel;        ///< "nngp": a bayesian posterior; "ntk": networks after training.
  Matrix<double> weights;    ///< [n, outputs]: the mean is the kernel with the training inputs times these.
  double lambda;             ///< The variance of the noise.
  double relative_residual;  ///< At which solutions stop.

  [[nodiscard]] bool is_trained() const { return kernel == "ntk"; }
};

/// What a model keeps of a posterior with the amplitude 1, for any new inputs, in memory and in files.
using Posterior = std::variant<Regression, TrainedNetworks, IterativeWeights>;

}  // namespace widelimit::gp
