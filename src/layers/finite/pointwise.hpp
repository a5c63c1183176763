#pragma once

#include "widelimit/network/finite_layer.hpp"
#include "widelimit/numerics/activation.hpp"

/// Layers that act on every number by itself.
namespace widelimit::finite {

CounterpartPointer activation_counterpart(numerics::ActivationPtr activation);

/// Keeps every number with probability `keep`, divided by it; drawn anew for every input and pass.
CounterpartPointer dropout_counterpart(double keep);

}  // namespace widelimit::finite
