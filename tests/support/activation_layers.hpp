#pragma once

#include "widelimit/network/layer.hpp"

namespace widelimit::testing {

/// A layer of every kind of activation that has a dual in closed form, its parameters not the defaults.
Layers closed_form_activations();

/// The others, whose duals come from quadrature.
Layers quadrature_activations();

}  // namespace widelimit::testing
