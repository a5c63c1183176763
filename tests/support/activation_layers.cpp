#include "support/activation_layers.hpp"

#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/kinds.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing {
namespace {

Layer example(const layers::LayerKind& kind) {
  return parse_network(R"({"widelimit": 1, "layers": [)" + layers::example_of(kind) + "]}").layers().front();
}

Layers examples(layers::DualForm dual) {
  Layers found;
  for (const layers::LayerKind& kind : layers::builtin_kinds())
    if (kind.dual == dual) found.push_back(example(kind));
  return found;
}

}  // namespace

Layers closed_form_activations() {
  Layers found = examples(layers::DualForm::closed);
  // With a shift inside it is an integral over an angle.
  found.push_back(layers::erf(1.1, 0.7, 0.4, -0.2));
  return found;
}

Layers quadrature_activations() { return examples(layers::DualForm::quadrature); }

Layers activations() {
  Layers found = closed_form_activations();
  for (const Layer& layer : quadrature_activations()) found.push_back(layer);
  return found;
}

}  // namespace widelimit::testing
