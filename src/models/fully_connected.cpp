#include "models/parts.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::models {
namespace {

Layers fcn(const Settings& settings) {
  Layers list;
  if (settings.integer("axes") > 0) list.push_back(layers::flatten());
  for (Index i = 0; i < settings.integer("depth"); ++i) {
    list.push_back(layers::dense({.weight_variance = settings.real("weight_variance"),
                                  .bias_variance = settings.real("bias_variance")}));
    list.push_back(layers::relu());
  }
  list.push_back(readout());
  return list;
}

}  // namespace

std::vector<NetworkRecipe> fully_connected_recipes() {
  return {{{.name = "fcn",
            .description = "fully connected: flatten, then depth x (dense + ReLU)",
            .options = {depth_option("hidden layers", 3),
                        integer_option("axes", "spatial axes of the inputs; 0: vectors, nothing to flatten",
                                       2, 0, 3),
                        real_option("weight_variance", "weight variance of the hidden layers", 2, 0, 1e6),
                        real_option("bias_variance", "bias variance of the hidden layers", 0.01, 0, 1e6)}},
           fcn}};
}

}  // namespace widelimit::models
