#include "support/activation_layers.hpp"

#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/exp_normalized.hpp"

namespace widelimit::testing {

using namespace widelimit::layers;

Layers closed_form_activations() {
  return {relu(),
          leaky_relu(0.2),
          layers::abs(),
          identity(),
          sign(),
          layers::erf(),
          gelu(),
          layers::sin(1.1, 0.9, 0.3),
          layers::cos(1.2, 0.8, 0.1),
          layers::exp(0.7, 0.4),
          gaussian(1, -0.5),
          rbf(0.6),
          polynomial({0.3, 1, -1.0 / 3}),
          hermite(2),
          layers::erf(1.1, 0.7, 0.4, -0.2),
          sigmoid_like(),
          gabor(),
          ab_relu(-1.0 / 3, 0.9),
          monomial(2),
          rectified_monomial(2),
          exp_normalized(0.5, -0.8)};
}

Layers quadrature_activations() { return {layers::tanh(), sigmoid(), silu(), softplus()}; }

}  // namespace widelimit::testing
