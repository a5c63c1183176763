#pragma once

#include "widelimit/network/layer.hpp"

namespace widelimit::testing {

/// A layer of every kind of activation that has a dual in closed form: the examples of their rows
/// (widelimit/layers/kinds.hpp).
Layers closed_form_activations();

/// The others, whose duals come from quadrature.
Layers quadrature_activations();

/// All of them.
Layers activations();

}  // namespace widelimit::testing
