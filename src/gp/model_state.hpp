#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "widelimit/gp/gradient_flow.hpp"
#include "widelimit/gp/model.hpp"
#include "widelimit/gp/regression.hpp"
#include "widelimit/kernel/prepared_inputs.hpp"

namespace widelimit::gp {

/// Networks trained for a time, and what their mean is made of.
struct TrainedNetworks {
  GradientFlow flow;
  double time;
  Matrix<double> weights;

  TrainedNetworks(GradientFlow fitted, double training_time)
      : flow{std::move(fitted)}, time{training_time}, weights{flow.weights(time)} {}
};

/// Kernels between new inputs and the training inputs, in double.
struct CrossKernels {
  Matrix<double> nngp;
  Matrix<double> ntk;
};

using Posterior = std::variant<Regression, TrainedNetworks>;
using AnyPreparedInputs = std::variant<PreparedInputs<float>, PreparedInputs<double>>;

/// All that a model is.
struct ModelState {
  AnyPreparedInputs inputs;
  Posterior posterior;
  Matrix<double> targets;
  std::vector<std::string> class_names;
  Preprocessing preprocessing;
  nlohmann::json preparation;
  std::optional<Selection> selection;
};

}  // namespace widelimit::gp
